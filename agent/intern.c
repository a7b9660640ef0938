/* SPDX-License-Identifier: MIT. intern.c: the insert-only tables of the ring: names, paths, launch
 * configurations, devices.
 *
 * An entry is written whole, then the table's count is stored (release), then its id goes into the
 * hash (release). Whoever finds an id finds a complete entry; the daemon reads entries below the
 * count only. Look-ups take no lock; insertion takes core.table_lock, with signals blocked, so a
 * handler never waits for the frame it interrupted. Nothing is ever removed.
 *
 * Laws (the daemon checks them): parent < own id; depth = parent's + 1 <= PATH_DEPTH_MAX; at most
 * PATH_CHILDREN_MAX children of a path besides its (other); the last PATH_OTHER_RESERVE entries are
 * (other)s only. What finds no place goes to an (other) and is counted. A child of a path at the
 * deepest level is that path itself.
 */
#include "intern.h"

#include <string.h>
#include <sys/mman.h>

#include "agent.h"
#include "core.h"
#include "longname.h"
#include "ring_file.h"
#include "sync.h"

#define CHUNK        (64u << 10) /* tables are backed with memory in steps of this */
#define CONFIG_SLOTS (2 * RING_CONFIGS)

/* All ordinary memory of this process. */
static struct tables {
	_Atomic uint32_t *name_hash, *path_hash, *config_hash; /* id + 1; 0: free */
	_Atomic uint32_t *local;                               /* process-local name -> ring name */
	_Atomic uint32_t *context;                             /* context handle -> path + 1 */
	_Atomic uint16_t *children;                            /* of each path */
	uint32_t name_mask, path_mask, config_mask;
	_Atomic bool paths_full; /* but for (other)s */
	uint64_t paths_backed, names_backed, bytes_backed, configs_backed, devices_backed;
	uint64_t mapped_bytes;
	void *mapped;
} tab;

static unsigned char *section(uint64_t offset)
{
	return (unsigned char *)core.header + offset;
}

static struct ring_path *path_at(uint32_t id)
{
	return (struct ring_path *)(void *)section(core.at.paths) + id;
}

static struct ring_name *name_at(uint32_t id)
{
	return (struct ring_name *)(void *)section(core.at.names) + id;
}

/* Memory under [0, end) of a section; what is backed once stays so. */
static bool back(uint64_t from, uint64_t limit, uint64_t end, uint64_t *have)
{
	uint64_t to = (end + CHUNK - 1) / CHUNK * CHUNK;

	if (end <= *have)
		return true;
	to = to < limit ? to : limit;
	if (to < end || ring_back(from + *have, to - *have) < 0)
		return false;
	*have = to;
	return true;
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* --- names ------------------------------------------------------------------------------------ */

static bool name_is(uint32_t id, uint64_t hash, const char *text, uint32_t bytes)
{
	const struct ring_name *n = name_at(id);

	return n->hash == hash && n->bytes == bytes &&
	       memcmp(section(core.at.bytes) + n->offset, text, bytes) == 0;
}

/* The id, or UINT32_MAX and in *ret_slot where it would go. */
static uint32_t name_find(uint64_t hash, const char *text, uint32_t bytes, uint32_t *ret_slot)
{
	for (uint32_t i = (uint32_t)mix(hash);; i++) {
		/* acquire: pairs with the release in name_insert() */
		const uint32_t v = atomic_load_explicit(
			&tab.name_hash[i & tab.name_mask], memory_order_acquire);

		*ret_slot = i & tab.name_mask;
		if (v == 0)
			return UINT32_MAX;
		if (name_is(v - 1, hash, text, bytes))
			return v - 1;
	}
}

static uint32_t name_insert(uint64_t hash, const char *text, uint32_t bytes, uint32_t slot)
{
	struct ring_counts *c = core.counts;
	const uint32_t id = atomic_load_explicit(&c->names, memory_order_relaxed);
	const uint32_t used = atomic_load_explicit(&c->name_bytes, memory_order_relaxed);
	const uint64_t entry = (uint64_t)(id + 1) * sizeof(struct ring_name);

	if (id >= core.header->name_cap || bytes > core.header->name_bytes_cap - used)
		return UINT32_MAX;
	if (!back(core.at.names, core.at.configs - core.at.names, entry, &tab.names_backed) ||
		!back(core.at.bytes, core.at.data - core.at.bytes, used + (uint64_t)bytes,
			&tab.bytes_backed))
		return UINT32_MAX;
	memcpy(section(core.at.bytes) + used, text, bytes);
	*name_at(id) = (struct ring_name){.offset = used, .bytes = bytes, .hash = hash};
	/* release, both: the entry is complete; pairs with the daemon's acquire of the counts */
	atomic_store_explicit(&c->name_bytes, used + bytes, memory_order_release);
	atomic_store_explicit(&c->names, id + 1, memory_order_release);
	/* release: pairs with the acquire in name_find() */
	atomic_store_explicit(&tab.name_hash[slot], id + 1, memory_order_release);
	return id;
}

/* UINT32_MAX: the table is full. */
static uint32_t name_get(const char *text, uint32_t bytes)
{
	const uint64_t hash = name_hash(text, bytes);
	uint32_t slot, id = name_find(hash, text, bytes, &slot);
	sigset_t mask;

	if (id != UINT32_MAX)
		return id;
	agent_lock_tables(&mask);
	id = name_find(hash, text, bytes, &slot);
	if (id == UINT32_MAX)
		id = name_insert(hash, text, bytes, slot);
	agent_unlock_tables(&mask);
	return id;
}

uint32_t agent_name(const char *text, size_t bytes)
{
	char cut[NAME_BYTES_MAX];
	uint32_t id;

	if (bytes > NAME_BYTES_MAX) {
		name_cut(text, bytes, cut);
		agent_count(&core.counts->names_cut, 1);
		text = cut;
		bytes = NAME_BYTES_MAX;
	}
	id = name_get(text, (uint32_t)bytes);
	if (id != UINT32_MAX)
		return id;
	agent_count(&core.counts->names_refused, 1);
	return NAME_OTHER;
}

/* Takes a domain of NVTX off a name (NAME_DOMAIN_MARK); the bytes of it, *ret_domain the ring's name of
 * it. */
static uint32_t domain_off(const char *text, uint32_t bytes, uint32_t *ret_domain)
{
	static const char none[] = "default";
	const char *end;
	uint32_t n;

	*ret_domain = NAME_NONE;
	if (bytes < 2 || (unsigned char)*text != NAME_DOMAIN_MARK)
		return 0;
	end = memchr(text + 1, NAME_DOMAIN_MARK, bytes - 1);
	if (end == NULL)
		return 0;
	n = (uint32_t)(end - text) - 1;
	*ret_domain = n > 0 ? agent_name(text + 1, n) : agent_name(none, sizeof(none) - 1);
	return n + 2;
}

static uint32_t domain_of(uint32_t local)
{
	uint32_t bytes = 0, domain;
	const char *text = core.host->name(local, &bytes);

	(void)domain_off(text, text != NULL ? bytes : 0, &domain);
	return domain;
}

uint32_t table_name_of(uint32_t local)
{
	const char *text;
	uint32_t id, bytes = 0, off, domain;

	if (local == 0 || local >= NAMES_MAX) { /* the process-local table was full */
		agent_count(&core.counts->names_refused, 1);
		return NAME_OTHER;
	}
	/* relaxed: the value is all there is; the entry behind it is in the ring since before */
	id = atomic_load_explicit(&tab.local[local], memory_order_relaxed);
	if (id != 0)
		return id;
	text = core.host->name(local, &bytes);
	if (text == NULL)
		return NAME_OTHER;
	off = domain_off(text, bytes, &domain);
	id = agent_name(text + off, bytes - off);
	/* libprotond cuts long names in the same way, where nobody counts. */
	if (bytes == NAME_BYTES_MAX && text[NAME_BYTES_MAX - NAME_HASH_HEX - 1] == '~')
		agent_count(&core.counts->names_cut, 1);
	if (id != NAME_OTHER)
		atomic_store_explicit(&tab.local[local], id, memory_order_relaxed);
	return id;
}

/* --- paths ------------------------------------------------------------------------------------ */

/* A path but for its depth. */
struct path_key {
	uint32_t parent, name, domain;
	uint16_t kind;
};

static uint32_t path_find(const struct path_key *k, uint32_t *ret_slot)
{
	const uint64_t key =
		mix((uint64_t)k->parent << 32 | k->name) + k->kind + ((uint64_t)k->domain << 8);

	for (uint32_t i = (uint32_t)mix(key);; i++) {
		/* acquire: pairs with the release in path_insert() */
		const uint32_t v = atomic_load_explicit(
			&tab.path_hash[i & tab.path_mask], memory_order_acquire);
		const struct ring_path *p;

		*ret_slot = i & tab.path_mask;
		if (v == 0)
			return UINT32_MAX;
		p = path_at(v - 1);
		if (p->parent == k->parent && p->name == k->name && p->kind == k->kind &&
			p->domain == k->domain)
			return v - 1;
	}
}

/* `limit`: how many entries there may be with this one. */
static uint32_t path_insert(const struct ring_path *e, uint32_t limit, uint32_t slot)
{
	struct ring_counts *c = core.counts;
	const uint32_t id = atomic_load_explicit(&c->paths, memory_order_relaxed);

	if (id >= limit ||
		!back(core.at.paths, core.at.names - core.at.paths,
			(uint64_t)(id + 1) * sizeof(struct ring_path), &tab.paths_backed))
		return UINT32_MAX;
	*path_at(id) = *e;
	/* release: pairs with the daemon's acquire of the count */
	atomic_store_explicit(&c->paths, id + 1, memory_order_release);
	/* release: pairs with the acquire in path_find() */
	atomic_store_explicit(&tab.path_hash[slot], id + 1, memory_order_release);
	return id;
}

/* Where a child goes that has no place of its own, UINT32_MAX: an (other) yet to be made. Below an
 * (other) in a full table it is that one itself, so that surplus costs no more entries than there
 * are parents. */
static uint32_t path_other_find(uint32_t parent, uint32_t *ret_slot)
{
	const struct path_key k = {parent, NAME_OTHER, NAME_NONE, PATH_KIND_SCOPE};
	const uint32_t id = path_find(&k, ret_slot);

	return id == UINT32_MAX && path_at(parent)->name == NAME_OTHER ? parent : id;
}

/* With the lock. */
static uint32_t path_other(uint32_t parent)
{
	const struct ring_path *p = path_at(parent);
	const struct ring_path e = {.parent = parent,
		.name = NAME_OTHER,
		.kind = PATH_KIND_SCOPE,
		.depth = (uint16_t)(p->depth + 1)};
	uint32_t slot, id = path_other_find(parent, &slot);

	if (id != UINT32_MAX)
		return id;
	id = path_insert(&e, core.header->path_cap, slot);
	return id != UINT32_MAX ? id : PATH_OTHER;
}

/* Is there no place for one more child? Once so, always so. */
static bool path_full(uint32_t parent)
{
	/* acquire, both: all that took a place can be found; pair with the releases in path_make()
	 */
	return atomic_load_explicit(&tab.children[parent], memory_order_acquire) >=
		       PATH_CHILDREN_MAX ||
	       atomic_load_explicit(&tab.paths_full, memory_order_acquire);
}

static uint32_t path_make(const struct path_key *k, bool *ret_refused)
{
	const uint32_t limit = core.header->path_cap - PATH_OTHER_RESERVE, parent = k->parent;
	const struct ring_path e = {.parent = parent,
		.name = k->name,
		.kind = k->kind,
		.depth = (uint16_t)(path_at(parent)->depth + 1),
		.domain = k->domain};
	uint32_t slot, id = path_find(k, &slot);

	if (id != UINT32_MAX)
		return id;
	if (!path_full(parent))
		id = path_insert(&e, limit, slot);
	if (id != UINT32_MAX) {
		atomic_fetch_add_explicit(&tab.children[parent], 1, memory_order_release);
		return id;
	}
	if (atomic_load_explicit(&core.counts->paths, memory_order_relaxed) >= limit)
		atomic_store_explicit(&tab.paths_full, true, memory_order_release);
	*ret_refused = true;
	return path_other(parent);
}

/* Without the lock, for a loop may ask for such a child each time: where it goes that cannot have a
 * place. UINT32_MAX: it has one, may get one, or an (other) is yet to be made. */
static uint32_t path_surplus(const struct path_key *k)
{
	uint32_t slot;

	if (!path_full(k->parent) || path_find(k, &slot) != UINT32_MAX)
		return UINT32_MAX;
	return path_other_find(k->parent, &slot);
}

static uint32_t path_child(const struct path_key *k, bool *ret_refused)
{
	uint32_t slot, id;
	sigset_t mask;

	if (path_at(k->parent)->depth >= PATH_DEPTH_MAX)
		return k->parent;
	id = path_find(k, &slot);
	if (id != UINT32_MAX)
		return id;
	id = path_surplus(k);
	*ret_refused = id != UINT32_MAX;
	if (!*ret_refused) {
		agent_lock_tables(&mask);
		id = path_make(k, ret_refused);
		agent_unlock_tables(&mask);
	}
	if (*ret_refused)
		agent_count(&core.counts->paths_refused, 1);
	return id;
}

uint32_t agent_path_child(uint32_t parent, enum path_kind kind, uint32_t name)
{
	/* acquire: pairs with the release of whoever inserted; a backend may hold any number */
	const uint32_t n = atomic_load_explicit(&core.counts->paths, memory_order_acquire);
	const struct path_key k = {
		parent < n ? parent : PATH_ROOT, name, NAME_NONE, (uint16_t)kind};
	bool refused = false;

	return path_child(&k, &refused);
}

bool agent_path_step(uint32_t path, struct agent_step *ret)
{
	const struct ring_path *p;
	const struct ring_name *n;

	if (core.header == NULL || path == PATH_ROOT || path >= core.header->path_cap)
		return false;
	p = path_at(path);
	n = name_at(p->name);
	*ret = (struct agent_step){.parent = p->parent,
		.kind = p->kind,
		.text = (const char *)section(core.at.bytes) + n->offset,
		.bytes = n->bytes};
	return true;
}

uint32_t table_scope(uint32_t parent, uint32_t local, bool *ret_keep)
{
	const struct path_key k = {parent, table_name_of(local), domain_of(local), PATH_KIND_SCOPE};
	bool refused = false;
	const uint32_t path = path_child(&k, &refused);

	*ret_keep = !refused && k.name != NAME_OTHER;
	return path;
}

/* --- contexts --------------------------------------------------------------------------------- */

/* A context may be longer than a path may be deep: its outermost levels are kept. */
uint32_t table_context_path(uint64_t context)
{
	uint32_t names[PATH_DEPTH_MAX], n = 0, skip = 0, path = PATH_ROOT;
	uint64_t parent;
	bool keep = true;

	if (context == 0 || context >= CONTEXTS_MAX)
		return PATH_ROOT;
	path = atomic_load_explicit(&tab.context[context], memory_order_relaxed);
	if (path != 0)
		return path - 1;
	for (uint64_t c = context; c != 0 && n < CONTEXTS_MAX; c = parent, n++)
		(void)core.host->context_name(c, &parent);
	skip = n > PATH_DEPTH_MAX ? n - PATH_DEPTH_MAX : 0;
	n = 0;
	for (uint64_t c = context; c != 0 && n < PATH_DEPTH_MAX; c = parent) {
		const uint32_t name = core.host->context_name(c, &parent);

		if (skip > 0)
			skip--;
		else
			names[n++] = name;
	}
	path = PATH_ROOT;
	while (n > 0) {
		bool known;

		path = table_scope(path, names[--n], &known);
		keep = keep && known;
	}
	if (keep)
		atomic_store_explicit(&tab.context[context], path + 1, memory_order_relaxed);
	return path;
}

/* --- configurations and devices --------------------------------------------------------------- */

uint32_t agent_config(const struct ring_config *c)
{
	struct ring_config *all = (struct ring_config *)(void *)section(core.at.configs);
	uint32_t id = UINT32_MAX, n, i = (uint32_t)mix(name_hash(c, sizeof(*c)));
	sigset_t mask;

	agent_lock_tables(&mask);
	n = atomic_load_explicit(&core.counts->configs, memory_order_relaxed);
	for (;; i++) {
		const uint32_t v = atomic_load_explicit(
			&tab.config_hash[i & tab.config_mask], memory_order_relaxed);

		if (v == 0)
			break;
		if (memcmp(&all[v - 1], c, sizeof(*c)) == 0) {
			id = v - 1;
			break;
		}
	}
	if (id == UINT32_MAX && n < core.header->config_cap &&
		back(core.at.configs, core.at.devices - core.at.configs,
			(uint64_t)(n + 1) * sizeof(*c), &tab.configs_backed)) {
		all[n] = *c;
		/* release: pairs with the daemon's acquire of the count */
		atomic_store_explicit(&core.counts->configs, n + 1, memory_order_release);
		atomic_store_explicit(
			&tab.config_hash[i & tab.config_mask], n + 1, memory_order_relaxed);
		id = n;
	}
	agent_unlock_tables(&mask);
	return id;
}

uint16_t agent_device(const struct ring_device *d)
{
	struct ring_device *all = (struct ring_device *)(void *)section(core.at.devices);
	uint16_t found = UINT16_MAX;
	uint32_t n;
	sigset_t mask;

	agent_lock_tables(&mask);
	n = atomic_load_explicit(&core.counts->devices, memory_order_relaxed);
	for (uint32_t i = 0; i < n && found == UINT16_MAX; i++)
		if (memcmp(all[i].uuid, d->uuid, sizeof(d->uuid)) == 0)
			found = (uint16_t)i;
	if (found == UINT16_MAX && n < core.header->device_cap &&
		back(core.at.devices, core.at.bytes - core.at.devices,
			(uint64_t)(n + 1) * sizeof(*d), &tab.devices_backed)) {
		all[n] = *d;
		/* release: pairs with the daemon's acquire of the count */
		atomic_store_explicit(&core.counts->devices, n + 1, memory_order_release);
		found = (uint16_t)n;
	}
	agent_unlock_tables(&mask);
	return found;
}

/* --- making ----------------------------------------------------------------------------------- */

static uint32_t slots_for(uint32_t cap)
{
	uint32_t n = 1024;

	while (n < 2 * cap)
		n *= 2;
	return n;
}

static int table_map(void)
{
	const struct ring_header *h = core.header;
	const uint32_t names = slots_for(h->name_cap), paths = slots_for(h->path_cap);
	const uint32_t configs = slots_for(h->config_cap);
	const uint64_t words = (uint64_t)names + paths + configs + NAMES_MAX + CONTEXTS_MAX;
	const uint64_t bytes = words * sizeof(uint32_t) + (uint64_t)h->path_cap * sizeof(uint16_t);
	unsigned char *w;

	if (tab.mapped != NULL)
		munmap(tab.mapped, tab.mapped_bytes);
	memset(&tab, 0, sizeof(tab));
	w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (w == MAP_FAILED)
		return -ENOMEM;
	tab = (struct tables){.mapped = w,
		.mapped_bytes = bytes,
		.name_mask = names - 1,
		.path_mask = paths - 1,
		.config_mask = configs - 1};
	tab.name_hash = (_Atomic uint32_t *)(void *)w;
	tab.path_hash = tab.name_hash + names;
	tab.config_hash = tab.path_hash + paths;
	tab.local = tab.config_hash + configs;
	tab.context = tab.local + NAMES_MAX;
	tab.children = (_Atomic uint16_t *)(void *)(w + words * sizeof(uint32_t));
	return 0;
}

/* The entries that every ring begins with: "", "(other)"; the root, and its (other). */
int table_init(void)
{
	static const char other[] = "(other)";
	const struct ring_path root = {.kind = PATH_KIND_ROOT};
	uint32_t slot;
	int r = table_map();

	if (r < 0)
		return r;
	if (name_get("", 0) != NAME_NONE || name_get(other, sizeof(other) - 1) != NAME_OTHER)
		return -ENOSPC;
	(void)path_find(&(struct path_key){.parent = UINT32_MAX, .kind = PATH_KIND_ROOT}, &slot);
	if (path_insert(&root, core.header->path_cap, slot) != PATH_ROOT ||
		path_other(PATH_ROOT) != PATH_OTHER)
		return -ENOSPC;
	return 0;
}
