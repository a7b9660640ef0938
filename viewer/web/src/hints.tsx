// SPDX-License-Identifier: MIT. hints.tsx: where to look first: the rules' verdicts, and the tabs that show what they judge.
import { api, get, type Verdicts } from "./api";
import { shown } from "./format";
import { selectName, useSession } from "./session";
import { set, usePromise } from "./state";

export function Hints() {
	const { id, beat } = useSession();
	const { value } = usePromise(() => get<Verdicts>(api(id, "bottlenecks")), [id, beat]);
	if (!value?.verdicts.length)
		return null;
	return (
		<section>
			<h2>Where to look</h2>
			<ul class="notes hints">
				{value.verdicts.map((v) => (
					<li key={v.words} class={v.severity === "HIGH" ? "warn" : ""}>
						<b>{v.severity}</b> {v.where.length > 0 ? `${v.where.slice(-2).reverse().map(shown).join(" in ")}: ` : ""}{v.words} <span class="hint">{v.advice}</span>{" "}
						<button type="button" class="link" onClick={() => (v.name && selectName(v.name), set({ tab: v.view }))}>show</button>
					</li>
				))}
			</ul>
		</section>
	);
}
