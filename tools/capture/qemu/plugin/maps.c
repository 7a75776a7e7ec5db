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
	uint64_t offset; // in the file
	char *path;      // "" if there is none
};

static bool parse(char *line, struct mapping *m)
{
	int path = 0;
	if (sscanf(line, "%lx-%lx %*s %lx %*x:%*x %*u %n", &m->at.base, &m->at.end, &m->offset, &path) < 3 || path == 0)
		return false;
	m->path = line + path;
	m->path[strcspn(m->path, "\n")] = 0;
	return true;
}

// Finds the mapping at an address of the host. The path is in the line, which the caller frees.
static bool find(uint64_t host, struct mapping *m, char **line)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return false;
	size_t room = 0;
	bool found = false;
	while (!found && getline(line, &room, maps) > 0 && parse(*line, m))
		found = within(&m->at, host);
	fclose(maps);
	return found;
}

// Writes a module without blocks, which are described separately. The options of the module are the
// offset of the mapping in the file. Package arrange computes from it where the file was loaded.
// That needs the program headers of the file: some linkers leave gaps between segments, and a
// program may map a part of a file a second time.
static void tell(const struct mapping *m)
{
	size_t length = strlen(m->path);
	uint8_t *tables = malloc(length + 96), *to = tables;
	if (!tables)
		return;
	char offset[32];
	size_t digits = (size_t)snprintf(offset, sizeof offset, "%#lx", m->offset);
	*to++ = 0; // uncompressed
	to = sg_uv(to, 3);
	to = sg_uv(to, 0);
	to = sg_uv(to, length);
	memcpy(to, m->path, length);
	to = sg_uv(to + length, digits);
	memcpy(to, offset, digits);
	to = sg_uv(to + digits, 1); // name
	to = sg_uv(to, 2);          // options
	to = sg_uv(to, m->at.base);
	to = sg_uv(to, m->at.end);
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
		char *line = 0;
		struct mapping m;
		if (find((uint64_t)(uintptr_t)host, &m, &line)) {
			m.at.base -= base;
			m.at.end -= base;
			know(m.at);
			if (m.path[0] == '/')
				tell(&m);
		}
		free(line);
	}
	sg_release(&known.lock);
}
