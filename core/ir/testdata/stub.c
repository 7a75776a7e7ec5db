// A runtime that only counts: steps and values of all modules, and says at the
// end what it counted. It checks that every word is where it must be.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>

struct block { uint32_t values, references, number, first_value; };
struct module {
	uint32_t abi, blocks;
	struct block *block;
	const uint8_t *scale, *tables;
	uint64_t tables_bytes;
	const void *const *object;
	uint64_t objects;
};
struct thread { uintptr_t cursor; uint64_t *end, ticket; };

__thread struct thread __sg_thread __attribute__((tls_model("initial-exec")));
uint64_t __sg_clock;
extern struct module *__start___sg_modules[], *__stop___sg_modules[];

enum { WORDS = 4096 };
static const uint64_t unwritten = UINT64_C(0x57a6dead57a6dead);
static __thread uint64_t *buffer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static uint64_t steps, values, references, masked;
static FILE *log_file;

static struct block *find(uint64_t word) {
	for (struct module **m = __start___sg_modules; m < __stop___sg_modules; m++) {
		struct block *b = (struct block *)word;
		if (b >= (*m)->block && b < (*m)->block + (*m)->blocks && (word - (uint64_t)(*m)->block) % sizeof *b == 0)
			return b;
	}
	fprintf(stderr, "stub: %llx is no block\n", (unsigned long long)word);
	_Exit(99);
}

static void drain(void) {
	pthread_mutex_lock(&lock);
	for (uint64_t *at = buffer; at < (uint64_t *)__sg_thread.cursor;) {
		struct block *b = find(*at++);
		b->number++;
		steps++;
		references += b->references;
		for (uint32_t i = 0; i < b->values; i++, at++, values++) {
			if (*at == unwritten) {
				fprintf(stderr, "stub: block %ld: value %u of %u is not written\n",
					(long)(b - (*__start___sg_modules)->block), i, b->values);
				_Exit(99);
			}
			if (log_file && i == 0)
				fprintf(log_file, "%llx\n", (unsigned long long)*at);
		}
	}
	pthread_mutex_unlock(&lock);
	__sg_thread.cursor = (uintptr_t)buffer;
	for (int i = 0; i < WORDS; i++)
		buffer[i] = unwritten;
}

static void thread_ends(void *unused) {
	(void)unused;
	if (buffer)
		drain();
}

__attribute__((preserve_most)) void __sg_more(uint64_t words, uint64_t *at) {
	(void)words;
	if (buffer) {
		__sg_thread.cursor = (uintptr_t)at;
	} else {
		buffer = malloc(WORDS * sizeof *buffer);
		__sg_thread.cursor = (uintptr_t)buffer;
		__sg_thread.end = buffer + WORDS;
		pthread_setspecific(key, buffer);
	}
	drain();
	__sg_thread.ticket = __sg_clock;
}

static void step(const struct block *b, uint64_t address, uint64_t bytes) {
	uint64_t *at = (uint64_t *)__sg_thread.cursor;
	if (at + 3 > __sg_thread.end || !at) {
		__sg_more(3, at);
		at = (uint64_t *)__sg_thread.cursor;
	}
	at[0] = (uint64_t)b, at[1] = address, at[2] = bytes;
	__sg_thread.cursor = (uintptr_t)(at + 3);
	__atomic_fetch_add(&masked, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&((struct block *)b)->first_value, (uint32_t)bytes, __ATOMIC_RELAXED);
}

void __sg_masked(const struct block *b, uint64_t address, uint64_t mask, uint32_t lanes, uint32_t lane_bytes) {
	for (uint32_t i = 0; i < lanes; i++) {
		uint32_t n = 0;
		while (i + n < lanes && mask >> (i + n) & 1)
			n++;
		if (n)
			step(b, address + (uint64_t)i * lane_bytes, (uint64_t)n * lane_bytes), i += n - 1;
	}
}

void __sg_lanes(const struct block *b, const uint64_t *addresses, uint64_t mask, uint32_t lanes, uint32_t lane_bytes) {
	for (uint32_t i = 0; i < lanes; i++)
		if (mask >> i & 1)
			step(b, addresses[i], lane_bytes);
}

static void report(void) {
	const char *to = getenv("STUB_OUT");
	thread_ends(0);
	FILE *out = to ? fopen(to, "w") : stderr;
	if (!out)
		return;
	fprintf(out, "modules %ld steps %llu values %llu references %llu masked %llu\n",
		(long)(__stop___sg_modules - __start___sg_modules), (unsigned long long)steps,
		(unsigned long long)values, (unsigned long long)references, (unsigned long long)masked);
	for (struct module **m = __start___sg_modules; m < __stop___sg_modules; m++)
		for (uint32_t i = 0; i < (*m)->blocks; i++)
			if ((*m)->block[i].number)
				fprintf(out, "%ld %u %u %u\n", (long)(m - __start___sg_modules), i, (*m)->block[i].number, (*m)->block[i].first_value);
	if (to)
		fclose(out);
}

__attribute__((constructor(101))) static void begin(void) {
	pthread_key_create(&key, thread_ends);
	if (getenv("STUB_LOG"))
		log_file = fopen(getenv("STUB_LOG"), "w");
	atexit(report);
}
