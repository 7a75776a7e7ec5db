#define _GNU_SOURCE
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/words.h"

// Addresses of the program whose file is known, or known not to exist.
struct range {
	uint64_t base, end;
};

static struct {
	struct sg_lock lock;
	struct range *at;
	uint32_t count, room;
	uint32_t last; // the last one found
} known;

static bool within(const struct range *r, uint64_t pc) { return pc - r->base < r->end - r->base; }

static bool is_known(uint64_t pc)
{
	if (known.last < known.count && within(&known.at[known.last], pc))
		return true;
	for (uint32_t i = 0; i < known.count; i++)
		if (within(&known.at[i], pc)) {
			known.last = i;
			return true;
		}
	return false;
}

static void know(struct range r)
{
	if (known.count == known.room) {
		uint32_t wanted = known.room ? 2 * known.room : 256;
		void *moved = sg_remap(known.at, known.room * sizeof r, wanted * sizeof r);
		if (!moved)
			return;
		known.at = moved;
		known.room = wanted;
	}
	known.at[known.count++] = r;
}

// One line of /proc/self/maps: "base-end rwxp offset major:minor inode   path".
struct mapping {
	struct range at;
	char *path; // "" if there is none
};

static bool parse(char *line, struct mapping *m)
{
	int path = 0;
	if (sscanf(line, "%lx-%lx %*s %*x %*x:%*x %*u %n", &m->at.base, &m->at.end, &path) < 2 || path == 0)
		return false;
	m->path = line + path;
	m->path[strcspn(m->path, "\n")] = 0;
	return true;
}

// Finds the mapping at an address of the host: a single mapping, or all adjacent mappings of the
// same file.
static bool find(uint64_t host, struct range *found, char **path)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return false;
	char *line = 0;
	size_t room = 0;
	bool in = false;
	struct mapping m;
	while (getline(&line, &room, maps) > 0 && parse(line, &m)) {
		bool same = m.path[0] == '/' && *path && strcmp(m.path, *path) == 0;
		if (same) {
			found->end = m.at.end;
		} else if (in) {
			break;
		} else {
			free(*path);
			*path = strdup(m.path);
			*found = m.at;
		}
		in = in || within(&m.at, host);
	}
	free(line);
	fclose(maps);
	return in;
}

// A module without blocks, which are described separately.
static void tell(const char *path, struct range r)
{
	size_t length = strlen(path);
	uint8_t *tables = malloc(length + 64), *to = tables;
	if (!tables)
		return;
	*to++ = 0; // uncompressed
	to = sg_uv(to, 2);
	to = sg_uv(to, 0);
	to = sg_uv(to, length);
	memcpy(to, path, length);
	to = sg_uv(to + length, 1); // name
	to = sg_uv(to, 0);          // options
	to = sg_uv(to, r.base);
	to = sg_uv(to, r.end);
	for (int i = 0; i < 5; i++) // uninstrumented, functions, blocks, objects, instructions
		to = sg_uv(to, 0);
	sg_file_module(sg_file, 0, 0, 0, tables, (size_t)(to - tables));
	free(tables);
}

void sg_code_at(uint64_t pc, const void *host)
{
	sg_acquire(&known.lock);
	if (!is_known(pc)) {
		uint64_t base = (uint64_t)(uintptr_t)host - pc; // difference between host addresses and the program's addresses
		char *path = 0;
		struct range r;
		if (find((uint64_t)(uintptr_t)host, &r, &path)) {
			r.base -= base;
			r.end -= base;
			know(r);
			if (path[0] == '/')
				tell(path, r);
		}
		free(path);
	}
	sg_release(&known.lock);
}
