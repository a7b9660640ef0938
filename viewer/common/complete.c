/* SPDX-License-Identifier: MIT. complete.c: what may stand where the cursor is. The shells' scripts
 * only ask `PROGRAM __complete -- WORD...`, so that the tables of options are the one source. */
#include "complete.h"

#include <stdio.h>
#include <string.h>

#include "human.h"

void complete_put(const char *begin, const char *word, const char *help)
{
	if (strncmp(word, begin, strlen(begin)) != 0 ||
		word[strcspn(word, " '\"\\$`!*?[](){}<>|&;~#")] != '\0' || !text_is_harmless(word))
		return;
	fputs(word, stdout);
	if (help != NULL) {
		fputc('\t', stdout);
		text_put(stdout, help, 0);
	}
	fputc('\n', stdout);
}

/* What is typed ends in `begin`; `before` is what stands before it in the same word. */
static void put_words(const char *before, size_t n, const char *begin, const char *words)
{
	char word[256];
	size_t k;

	for (; *words != '\0'; words += k + (words[k] == ' ')) {
		k = strcspn(words, " ");
		if (k >= strlen(begin) && strncmp(words, begin, strlen(begin)) == 0 &&
			snprintf(word, sizeof(word), "%.*s%.*s", (int)n, before, (int)k, words) <
				(int)sizeof(word))
			puts(word);
	}
}

void complete_words(const char *begin, const char *words)
{
	put_words("", 0, begin, words);
}

/* A value that may be several, with commas: the last of them is being typed. */
static void put_value(const char *typed, const char *value, const char *words)
{
	const char *comma = strrchr(value, ',');

	if (comma != NULL)
		value = comma + 1;
	if (words != NULL)
		put_words(typed, (size_t)(value - typed), value, words);
}

/* "--name", "--name=value" or "-k". */
static bool find(
	const char *typed, complete_option_fn *option, const void *of, struct complete_option *ret)
{
	const size_t n = strcspn(typed, "=");
	size_t i;

	for (i = 0; option(of, i, ret); i++) {
		if (typed[1] == '-' && strlen(ret->name) + 2 == n &&
			strncmp(typed + 2, ret->name, n - 2) == 0)
			return true;
		if (typed[1] != '-' && typed[1] == ret->key && typed[2] == '\0')
			return true;
	}
	return false;
}

int complete_options(
	int n, char *const *word, complete_option_fn *option, const void *of, bool passes)
{
	const char *typed = strcmp(word[n - 1], "=") == 0 ? "" : word[n - 1];
	struct complete_option o = {.name = NULL};
	bool is_value = false, ended = false;
	char name[64];
	int i, plain = 0;
	size_t k;

	for (i = 0; i < n - 1; i++) {
		if (strcmp(word[i], "=") == 0) /* bash: --name = value */
			continue;
		if (is_value || ended || word[i][0] != '-' || word[i][1] == '\0') {
			plain += !is_value;
			ended |= passes && !is_value;
			is_value = false;
		} else if (strcmp(word[i], "--") == 0) {
			ended = true;
		} else {
			is_value = find(word[i], option, of, &o) && o.takes &&
				   strchr(word[i], '=') == NULL;
		}
	}
	if (is_value) {
		put_value(typed, typed, o.words);
		return -1;
	}
	if (ended || typed[0] != '-')
		return plain;
	if (strchr(typed, '=') != NULL) {
		if (find(typed, option, of, &o))
			put_value(typed, strchr(typed, '=') + 1, o.words);
		return -1;
	}
	for (k = 0; option(of, k, &o); k++) {
		snprintf(name, sizeof(name), "--%s", o.name);
		complete_put(typed, name, o.help);
	}
	return -1;
}

/* --- scripts */

/* bash cuts words at '=', ':' and '@', too, and replaces only what stands behind the last cut: they
 * are put together again, and what stands before it ($2 does not) is taken off what is offered. */
static const char bash[] =
	"_protond() {\n"
	"  local rest=${COMP_LINE:0:COMP_POINT} word words=('')\n"
	"  for word in \"${COMP_WORDS[@]:0:COMP_CWORD+1}\"; do\n"
	"    case $rest in [[:space:]]*)\n"
	"      rest=${rest#\"${rest%%[![:space:]]*}\"}; words+=('');;\n"
	"    esac\n"
	"    words[-1]+=$word; rest=${rest#\"$word\"}\n"
	"  done\n"
	"  mapfile -t COMPREPLY < <(\"${words[0]}\" __complete -- \"${words[@]:1}\" 2>/dev/null)\n"
	"  if [ \"${COMPREPLY[0]}\" = '" COMPLETE_COMMAND "' ]; then\n"
	"    mapfile -t COMPREPLY < <(compgen -c -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
	"  fi\n"
	"  COMPREPLY=(\"${COMPREPLY[@]%%$'\\t'*}\")\n"
	"  COMPREPLY=(\"${COMPREPLY[@]#\"${words[-1]%\"$2\"}\"}\")\n"
	"}\n"
	"complete -o default -F _protond protonctl protonview\n";

static const char zsh[] =
	"#compdef protonctl protonview\n"
	"_protond() {\n"
	"  local -a all names\n"
	"  all=(\"${(@f)$(\"$words[1]\" __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
	"  names=(\"${(@)all%%$'\\t'*}\")\n"
	"  case $all[1] in\n"
	"  '') _files ;;\n"
	"  '" COMPLETE_COMMAND "') _command_names -e ;;\n"
	"  *) all=(\"${(@)all//$'\\t'/  -- }\"); compadd -l -d all -a names ;;\n"
	"  esac\n"
	"}\n"
	"if [ \"$funcstack[1]\" = _protonctl ]; then _protond \"$@\"; "
	"else compdef _protond protonctl protonview; fi\n";

static const char fish[] =
	"function __protond\n"
	"  set -l words (commandline -opc)\n"
	"  set -l all ($words[1] __complete -- $words[2..] (commandline -ct) 2>/dev/null)\n"
	"  switch \"$all[1]\"\n"
	"  case ''\n"
	"    __fish_complete_path (commandline -ct)\n"
	"  case '" COMPLETE_COMMAND "'\n"
	"    __fish_complete_command\n"
	"  case '*'\n"
	"    printf '%s\\n' $all\n"
	"  end\n"
	"end\n"
	"complete -c protonctl -f -a '(__protond)'\n"
	"complete -c protonview -f -a '(__protond)'\n";

const char *complete_script(const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		return bash;
	if (strcmp(shell, "zsh") == 0)
		return zsh;
	return strcmp(shell, "fish") == 0 ? fish : NULL;
}
