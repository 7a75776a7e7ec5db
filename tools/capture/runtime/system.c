#define _GNU_SOURCE
#include "system.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { granule = 1 << 16 }; // at least a page, whatever its size

void *sg_map(size_t bytes)
{
	// Far from all addresses that systems and sanitizers use. The kernel ignores it if it is in use
	// or is not a possible address.
	static uint64_t next = UINT64_C(0x300000000000);
	uint64_t step = (bytes + granule - 1) & ~(uint64_t)(granule - 1);
	uint64_t at = __atomic_fetch_add(&next, step, __ATOMIC_RELAXED);
	void *hint = sizeof hint == sizeof at ? (void *)(uintptr_t)at : 0;
	void *memory = mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? 0 : memory;
}

void sg_unmap(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

void *sg_remap(void *memory, size_t bytes, size_t wanted)
{
	void *moved = sg_map(wanted);
	if (!memory || !moved)
		return moved;
	memory = mremap(memory, bytes, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	if (memory != MAP_FAILED)
		return memory;
	sg_unmap(moved, wanted);
	return 0;
}

// See Drepper, "Futexes are tricky", section 5: mutex 2.

static uint32_t swap(struct sg_lock *lock, uint32_t state)
{
	return atomic_exchange((_Atomic uint32_t *)&lock->state, state);
}

static void (*each_second)(void);
static __thread bool spawned __attribute__((tls_model("initial-exec"))); // sg_spawn has started this thread

void sg_each_second(void (*call)(void)) { each_second = call; }

void sg_waited_a_second(void)
{
	if (each_second && !spawned)
		each_second();
}

static const long second[] = {1, 0}; // the kernel's timespec

void sg_wait(uint32_t *word, uint32_t seen)
{
	int error = errno;
	if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, second, 0, 0) != 0 && errno == ETIMEDOUT)
		sg_waited_a_second();
	errno = error;
}

void sg_wake(uint32_t *word, int threads)
{
	int error = errno;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, 0, 0, 0);
	errno = error;
}

void sg_acquire(struct sg_lock *lock)
{
	uint32_t seen = 0;
	if (atomic_compare_exchange_strong((_Atomic uint32_t *)&lock->state, &seen, 1))
		return;
	while (swap(lock, 2) != 0)
		sg_wait(&lock->state, 2);
}

void sg_release(struct sg_lock *lock)
{
	if (swap(lock, 0) == 2)
		sg_wake(&lock->state, 1);
}

// ---- threads

unsigned sg_processors(void)
{
	uint64_t mask[128] = {0};
	unsigned count = 0;
	if (syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0)
		return 1;
	for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
		count += (unsigned)__builtin_popcountll(mask[i]);
	return count;
}

#if defined __x86_64__ || defined __aarch64__
static char *thread_pointer(void)
{
	char *at;
#if defined __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(at));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(at));
#endif
	return at;
}

static int call(void *run)
{
	spawned = true;
	prctl(PR_SET_NAME, "stackglass");
	((void (*)(void))run)();
	return 0;
}

// Returns how many bytes around the thread pointer contain the thread-local variables that the thread
// uses, and the C library's description of the thread.
static size_t local_bytes(const char *pointer)
{
	const char *used[] = {(char *)&errno, (char *)&spawned};
	size_t most = 0;
	for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
		size_t away = used[i] < pointer ? (size_t)(pointer - used[i]) : (size_t)(used[i] - pointer);
		most = away > most ? away : most;
	}
	return (most / granule + 2) * granule;
}

bool sg_spawn(void (*run)(void))
{
	enum { stack_bytes = 1 << 18 };
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
	size_t local = local_bytes(thread_pointer()), bytes = stack_bytes + 2 * local;
	char *memory = sg_map(bytes);
	if (!memory)
		return false;
	char **its = (char **)(memory + stack_bytes + local);
#if defined __x86_64__
	its[0] = its[2] = (char *)its; // x86-64: the thread pointer, and the description of the thread
#endif
	uint64_t all = ~UINT64_C(0), before;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
	bool started = clone(call, memory + stack_bytes, flags, (void *)run, 0, its, 0) >= 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
	if (!started)
		sg_unmap(memory, bytes);
	return started;
}
#else
bool sg_spawn(void (*run)(void)) { return false; }
#endif
