#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"
#include "say.h"

// ---- messages

static void tell_result(void)
{
	struct sg_sentence s = {0};
	if (sg_run.settings.quiet || sg_run.told)
		return;
	sg_add(&s, "stackglass: ");
	sg_add_number(&s, sg_file_references(sg_run.file));
	sg_add(&s, " references in ");
	sg_add(&s, sg_run.settings.out);
	sg_add(&s, " (");
	sg_add_bytes(&s, sg_file_bytes(sg_run.file));
	sg_add(&s, ")");
	if (sg_file_error(sg_run.file) == ECANCELED)
		sg_add(&s, "; the trace ends at the limit of STACKGLASS_MAX_BYTES");
	sg_say(&s);
}

static void tell_failure(int error)
{
	struct sg_sentence s = {0};
	sg_add(&s, "stackglass: ");
	sg_add(&s, sg_run.settings.out);
	sg_add(&s, " cannot be written any further: ");
	sg_add_error(&s, error);
	sg_add(&s, "; the trace ends there, after ");
	sg_add_number(&s, sg_file_references(sg_run.file));
	sg_add(&s, " references, and the program runs on");
	sg_say(&s);
	sg_run.told = true;
}

// ---- the end of recording

static uint64_t lost_steps(void)
{
	uint64_t lost = sg_load(&sg_run.lost);
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next)
		if (t->encoder)
			lost += sg_encoder_lost(t->encoder);
	return lost;
}

SG_API void sg_stop(void)
{
	if (__atomic_exchange_n(&sg_run.over, true, __ATOMIC_SEQ_CST))
		return;
	sg_store(&sg_run.recording, false);
	sg_bump_clock();
	int error = sg_file_error(sg_run.file);
	struct sg_sentence how = {0};
	sg_add(&how, error == ECANCELED ? "limit" : "error ");
	if (error != ECANCELED)
		sg_add_digits(&how, (uint64_t)error);
	how.text[how.length] = 0;
	sg_file_close(sg_run.file, how.text, 0, lost_steps());
	if (error != ECANCELED)
		tell_failure(error);
}

static void drain_threads(void)
{
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next) {
		sg_acquire(&t->lock);
		if (sg_load(&t->live))
			sg_drain(t);
		t->recording = false;
		sg_release(&t->lock);
	}
}

static void die(int number, siginfo_t *info, void *context);

// The steps of a handler are between the steps of the code that it interrupts, so the trace records
// which signals the program handles.
static void tell_handlers(void)
{
	struct sg_sentence numbers = {0};
	struct sg_body facts = {0};
	struct sigaction now;
	for (int number = 1; number < NSIG; number++) {
		if (sigaction(number, 0, &now) != 0 || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || now.sa_sigaction == die)
			continue;
		sg_add(&numbers, numbers.length ? " " : "");
		sg_add_digits(&numbers, (uint64_t)number);
	}
	if (numbers.length == 0)
		return;
	sg_put_uv(&facts, 1);
	sg_put_str(&facts, "handlers");
	sg_put_str(&facts, numbers.text);
	sg_file_frame(sg_run.file, "CAPT", &facts);
}

static __thread bool finishing SG_TLS;

SG_API void sg_finish(const char *how, int status)
{
	struct sg_outside before;
	if (getpid() != sg_run.process)
		return; // a child of vfork ends, in the memory of its parent
	finishing = true;
	sg_enter(&before);
	sg_acquire(&sg_run.ending);
	if (!sg_run.finished && sg_run.file) {
		sg_store(&sg_run.recording, false);
		if (!sg_load(&sg_run.over)) {
			drain_threads();
			tell_handlers();
		}
		if (!__atomic_exchange_n(&sg_run.over, true, __ATOMIC_SEQ_CST))
			sg_file_close(sg_run.file, how, status & 0xff, lost_steps()); // the part of the status that a waiting parent sees
		tell_result();
	}
	sg_run.finished = true;
	sg_release(&sg_run.ending);
	finishing = false;
	sg_leave(&before);
}

// ---- exit

static void remember_status(int status, void *nothing)
{
	(void)nothing;
	sg_run.status = status;
}

// Shared libraries end after the program: the last instrumented library completes the trace.
static __attribute__((destructor(101))) void program_ends(void)
{
	struct sg_thread *t = sg_self();
	if (t && getpid() == sg_run.process)
		sg_step(&sg_own[sg_thread_end], 0);
	sg_run.exiting = true;
	if (sg_run.libraries == 0)
		sg_finish("exit", sg_run.status);
}

static void quick_exit_ends(void) { sg_finish("exit", sg_run.status); }

// ---- signals

enum {
	least_signal_stack = 8 << 20,
	guard_bytes = 1 << 16, // at least a page, whatever its size
	ending_stack_bytes = 1 << 18,
};

static void unmap_signal_stack(struct sg_thread *t)
{
	sg_unmap(t->signal_stack, t->signal_stack_bytes);
	t->signal_stack = 0;
}

// A handler of the runtime may have to run because the stack is full. The program's own handlers
// may also run on this alternate stack, if they request one and the program has none. So it is as
// large as the thread's stack; only the part that is used costs memory.
static void give_signal_stack(struct sg_thread *t)
{
	size_t bytes = t->stack.high - t->stack.low;
	bytes = bytes < least_signal_stack ? least_signal_stack : bytes;
	char *memory = sg_map(bytes);
	if (!memory)
		return;
	mprotect(memory, guard_bytes, PROT_NONE);
	stack_t ours = {.ss_sp = memory + guard_bytes, .ss_size = bytes - guard_bytes};
	t->signal_stack = memory;
	t->signal_stack_bytes = bytes;
	if (sigaltstack(&ours, 0) != 0)
		unmap_signal_stack(t);
}

SG_API void sg_signal_stack(struct sg_thread *t, bool wanted)
{
	stack_t now, none = {.ss_flags = SS_DISABLE};
	if (sigaltstack(0, &now) != 0)
		return;
	if (wanted && now.ss_flags & SS_DISABLE) {
		give_signal_stack(t);
	} else if (!wanted && t->signal_stack) {
		if ((char *)now.ss_sp == (char *)t->signal_stack + guard_bytes && sigaltstack(&none, 0) != 0)
			return; // in use: the thread ends in a handler
		unmap_signal_stack(t);
	}
}

static void name_signal(struct sg_sentence *how, int number)
{
	if (number == SIGABRT) {
		sg_add(how, "abort");
	} else {
		sg_add(how, "signal ");
		sg_add_digits(how, (uint64_t)number);
	}
	how->text[how->length] = 0;
}

// A fault occurs again when its instruction is executed again, with the information that a debugger
// needs. Other signals do not occur again: signals that a process sent, and signals that the kernel
// sends for timers, limits, the terminal, breakpoints and forbidden system calls.
static bool comes_again(int number, const siginfo_t *info)
{
	switch (number) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL: return info->si_code > 0 && info->si_code != SI_KERNEL;
	}
	return false;
}

static void finish_by_signal(int number)
{
	struct sg_sentence how = {0};
	name_signal(&how, number);
	sg_finish(how.text, 128 + number);
}

struct ending_stack {
	ucontext_t here, there;
	char room[ending_stack_bytes];
};

// The handler may run on an alternate stack of the program, which may have hardly more room than
// the handler's frame needs.
static void finish_on_own_stack(int number)
{
	struct ending_stack *s = sg_map(sizeof *s);
	if (!s || getcontext(&s->there) != 0) {
		finish_by_signal(number);
		return;
	}
	s->there.uc_stack = (stack_t){.ss_sp = s->room, .ss_size = sizeof s->room};
	s->there.uc_link = &s->here;
	makecontext(&s->there, (void (*)(void))finish_by_signal, 1, number);
	swapcontext(&s->here, &s->there);
	sg_unmap(s, sizeof *s);
}

static const int deadly[] = {SIGHUP,  SIGINT,  SIGQUIT,   SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
                             SIGUSR1, SIGSEGV, SIGUSR2,   SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ,
                             SIGPROF, SIGSYS,  SIGVTALRM, SIGPOLL};

static __thread int dying SG_TLS; // the signal that ends the process

// Returns the signal that would end the process if the thread were not in the runtime, or 0.
static int pending_death(void)
{
	struct sigaction now;
	sigset_t pending;
	sigpending(&pending);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		if (sigismember(&pending, deadly[i]) == 1 && !sg_blocks(deadly[i]) && sigaction(deadly[i], 0, &now) == 0 &&
		    (now.sa_sigaction == die || now.sa_handler == SIG_DFL))
			return deadly[i];
	return 0;
}

// A signal always ends the process. If the runtime waits for something that does not happen (a pipe
// that nobody reads, or a lock in memory that the program has overwritten), the trace is truncated.
static void lose_patience(void)
{
	enum { patience = 5 }; // seconds
	static __thread unsigned waited SG_TLS;
	struct sigaction as_ever = {.sa_handler = SIG_DFL};
	sigset_t only;
	int number = dying ? dying : pending_death();
	waited = number ? waited + 1 : 0;
	if (waited < patience)
		return;
	sigaction(number, &as_ever, 0);
	raise(number);
	sigemptyset(&only);
	sigaddset(&only, number);
	pthread_sigmask(SIG_UNBLOCK, &only, 0);
}

// After the trace is complete, the signal has its usual effect.
static void die(int number, siginfo_t *info, void *context)
{
	(void)context;
	struct sg_thread *t = sg_self();
	struct sigaction as_ever = {.sa_handler = SIG_DFL};
	int error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
	dying = number;
	if (!finishing && !(t && t->busy)) // otherwise, the fault is in the runtime, which holds its locks
		finish_on_own_stack(number);
	sigaction(number, &as_ever, 0);
	if (!comes_again(number, info))
		raise(number);
	errno = error;
}

static void take_signals(void)
{
	struct sigaction before, ours = {.sa_sigaction = die, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		if (sigaction(deadly[i], 0, &before) == 0 && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
			sigaction(deadly[i], &ours, 0);
}

// ---- fork

static struct sg_outside before_fork;

// The parent may be about to end in a way that the runtime cannot intercept: daemon() ends it
// within the C library. This thread's steps are therefore written to the file. The file is then
// complete, unless other threads have more steps.
static void save_before_fork(void)
{
	struct sg_thread *me = sg_self();
	bool alone = true;
	if (!sg_run.file || sg_load(&sg_run.over) || getpid() != sg_run.process || (me && me->busy))
		return;
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next)
		alone = alone && (t == me || !sg_load(&t->live));
	if (me) {
		sg_acquire(&me->lock);
		sg_drain(me);
		sg_release(&me->lock);
		sg_bump_clock();
	}
	if (alone)
		sg_file_mark(sg_run.file, "fork", lost_steps());
}

static void fork_begins(void)
{
	struct sg_outside before;
	sg_enter(&before);
	sg_acquire(&sg_run.modules);
	sg_acquire(&sg_run.ending);
	before_fork = before;
	save_before_fork();
}

static void fork_done(void)
{
	struct sg_outside before = before_fork;
	sg_release(&sg_run.ending);
	sg_release(&sg_run.modules);
	sg_leave(&before);
}

static void forget_threads(const struct sg_thread *but)
{
	for (struct sg_thread *t = sg_run.threads; t; t = t->next)
		if (t != but) {
			if (t->encoder)
				sg_encoder_free(t->encoder);
			if (t->buffer)
				sg_unmap(t->buffer, sg_buffer_bytes);
			*t = (struct sg_thread){.next = t->next, .oldest = SG_NONE};
		}
}

static bool open_child(void)
{
	static char path[PATH_MAX];
	static size_t base;
	struct sg_sentence name = {0};
	if (base == 0)
		base = strlen(sg_run.settings.out);
	sg_run.settings.out[base] = 0;
	sg_add(&name, sg_run.settings.out);
	sg_add(&name, ".");
	sg_add_digits(&name, (uint64_t)getpid());
	if (name.length >= sizeof path)
		return false;
	memcpy(sg_run.settings.out, name.text, name.length + 1);
	return sg_open(sg_run.settings.out);
}

// The child contains only this thread. The steps in its buffer belong to the parent.
static void fork_made_child(void)
{
	struct sg_thread *t = sg_self();
	bool open = sg_run.file && !sg_run.over;
	sg_run.process = getpid();
	sg_run.lost = 0;
	sg_run.told = false;
	if (sg_run.file)
		sg_file_abandon(sg_run.file);
	sg_run.file = 0;
	forget_threads(t);
	sg_run.over = !(open && sg_run.settings.fork_file && open_child());
	sg_run.recording = sg_run.recording && !sg_run.over;
	if (t)
		sg_begin_anew(t);
	fork_done();
}

// ---- exec

// All other threads stop at their next write.
SG_API bool sg_pause(struct sg_outside *before)
{
	if (getpid() != sg_run.process || sg_load(&sg_run.over))
		return false;
	sg_enter(before);
	sg_acquire(&sg_run.ending);
	finishing = true;
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next) {
		sg_acquire(&t->lock);
		if (sg_load(&t->live))
			sg_drain(t);
	}
	if (sg_self())
		sg_release(&sg_self()->lock);
	sg_bump_clock();
	sg_file_close(sg_run.file, "exec", 0, lost_steps());
	pthread_sigmask(SIG_SETMASK, &before->signals, 0); // the new program inherits the blocked signals
	return true;
}

SG_API void sg_resume(const struct sg_outside *before)
{
	sigset_t now;
	sg_block_signals(&now);
	bool open = sg_file_reopen(sg_run.file);
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next)
		if (t != sg_self())
			sg_release(&t->lock);
	sg_release(&sg_run.ending);
	finishing = false;
	if (!open)
		sg_stop();
	sg_leave(before);
}

SG_API void sg_ending_prepare(void)
{
	on_exit(remember_status, 0);
	at_quick_exit(quick_exit_ends);
	pthread_atfork(fork_begins, fork_done, fork_made_child);
	sg_each_second(lose_patience);
	take_signals();
}
