#define _GNU_SOURCE
#include "plugin.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api.h"

#ifndef QEMU_PLUGIN_VERSION
#define QEMU_PLUGIN_VERSION 1
#endif

QEMU_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct sg_file *sg_file;

static struct sg_lock ending;
static bool ended;

// ---- the program's actions

static void refer(unsigned vcpu, struct sg_insn *insn, unsigned direction, unsigned shift, uint64_t address)
{
	const struct __sg_block *b = insn->site[direction][shift];
	if (!b && sg_file) // in a child, a thread that fork did not copy may hold a lock
		b = sg_meet(insn, direction, shift);
	if (b)
		sg_step(vcpu, b, address);
}

// One callback for both directions: if there are several, QEMU 7 calls only some of them. QEMU 7
// also calls it only once for an atomic instruction that loads and stores, and the API function
// then reports a store. Among the other bits of the number, these two have been stable since QEMU
// 6. (QEMU 9 calls it twice.)
static void on_reference(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct sg_insn *insn = data;
	unsigned shift = qemu_plugin_mem_size_shift(info);
	if (shift >= sg_size_shifts)
		return;
	if (!qemu_plugin_mem_is_store(info)) {
		refer(vcpu, insn, sg_load_site, shift, address);
		return;
	}
	if ((info >> 16 & 3) == QEMU_PLUGIN_MEM_RW)
		refer(vcpu, insn, sg_load_site, shift, address);
	refer(vcpu, insn, sg_store_site, shift, address);
}

static void on_block(unsigned vcpu, void *data) { sg_step(vcpu, data, 0); }

static void watch(struct qemu_plugin_insn *q)
{
	struct sg_insn *insn = sg_insn_at(qemu_plugin_insn_vaddr(q));
	if (insn)
		qemu_plugin_register_vcpu_mem_cb(q, on_reference, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, insn);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	size_t count = qemu_plugin_tb_n_insns(tb);
	if (count == 0 || !sg_file)
		return;
	struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0), *last = qemu_plugin_tb_get_insn(tb, count - 1);
	sg_code_at(qemu_plugin_insn_vaddr(first), qemu_plugin_insn_haddr(first));
	const struct __sg_block *b = sg_block_of(qemu_plugin_insn_vaddr(first), qemu_plugin_insn_vaddr(last));
	if (b)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)b);
	for (size_t i = 0; i < count; i++)
		watch(qemu_plugin_tb_get_insn(tb, i));
}

static void on_thread(qemu_plugin_id_t id, unsigned vcpu)
{
	(void)id;
	sg_guest_expected(vcpu);
}

static void on_thread_end(qemu_plugin_id_t id, unsigned vcpu)
{
	(void)id, (void)vcpu;
	sg_guest_ends();
}

// ---- how a run ends

static void end(const char *how, int status)
{
	sg_acquire(&ending);
	if (!ended) {
		ended = true;
		uint64_t lost = sg_pause();
		if (sg_file_error(sg_file) == ECANCELED)
			how = "limit";
		sg_file_close(sg_file, how, status, lost);
	}
	sg_release(&ending);
}

static int exit_status;

static void on_exit_of_all(qemu_plugin_id_t id, void *data)
{
	(void)id, (void)data;
	end("exit", exit_status);
}

// Numbers of system calls, which depend on the architecture.
static struct {
	int64_t exec, exec_at, exit_group;
} calls = {-1, -1, -1};

static void know_calls(const char *target)
{
	if (strcmp(target, "x86_64") == 0) {
		calls.exec = 59, calls.exec_at = 322, calls.exit_group = 231;
	} else if (strcmp(target, "aarch64") == 0 || strcmp(target, "riscv64") == 0) {
		calls.exec = 221, calls.exec_at = 281, calls.exit_group = 94;
	}
}

static bool is_exec(int64_t number) { return number == calls.exec || number == calls.exec_at; }

// The program is replaced by another program. QEMU does not notify plugins of this.
static void on_call(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                    uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)id, (void)vcpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
	if (number == calls.exit_group)
		exit_status = (int)(a1 & 0xff);
	if (is_exec(number))
		end("exec", 0);
	sg_guest_parks(true);
}

static void on_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result)
{
	(void)id, (void)vcpu, (void)result;
	sg_guest_parks(false);
	if (!is_exec(number) || !sg_file)
		return;
	sg_acquire(&ending);
	if (ended && sg_file_reopen(sg_file)) {
		ended = false;
		sg_resume();
	}
	sg_release(&ending);
}

// If a signal ends the program, QEMU ends as well: it resets the signal and sends it to itself,
// without notifying plugins. This library is preloaded, so its functions are called first.
QEMU_EXPORT int kill(pid_t process, int signal)
{
	struct sigaction now;
	if (sg_file && process == getpid() && signal > 0 && sigaction(signal, 0, &now) == 0 && now.sa_handler == SIG_DFL) {
		char how[32];
		snprintf(how, sizeof how, "signal %d", signal);
		end(how, 128 + signal);
	}
	return (int)syscall(SYS_kill, process, signal);
}

static void in_child(void)
{
	if (!sg_file)
		return; // a child of a child
	ended = true;
	ending = (struct sg_lock){0};
	sg_forked();
	sg_file_abandon(sg_file);
	sg_file = 0;
}

// ---- the beginning

static uint64_t number(const char *name)
{
	const char *set = getenv(name);
	return set ? strtoull(set, 0, 10) : 0;
}

static struct sg_file *open_trace(const char *target)
{
	const struct sg_fact facts[] = {{"tool", "stackglass trace"}, {"order", "exact"}, {"target", target}};
	const struct sg_extent extent = {number("STACKGLASS_TRACE_BYTES"), number("STACKGLASS_TRACE_AFTER"), number("STACKGLASS_TRACE_FOR")};
	const char *path = getenv("STACKGLASS_TRACE");
	if (!path)
		return 0;
	return sg_file_open(path, extent, facts, sizeof facts / sizeof *facts);
}

QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	(void)argc, (void)argv;
	if (info->system_emulation || !sg_code_prepare())
		return -1;
	if (!(sg_file = open_trace(info->target_name))) {
		fprintf(stderr, "stackglass: the trace cannot be written: %s\n", strerror(errno));
		return -1;
	}
	know_calls(info->target_name);
	sg_declare();
	pthread_atfork(0, 0, in_child);
	qemu_plugin_register_vcpu_init_cb(id, on_thread);
	qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_vcpu_syscall_cb(id, on_call);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
	qemu_plugin_register_atexit_cb(id, on_exit_of_all, 0);
	return 0;
}
