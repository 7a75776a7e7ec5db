// Package sasmm synthesises the traces of m cores as PPT-SASMM prints it: Algorithms 1 and 2 of
// Barai, Chennupati, Santhi, Badawy, Arafa, Eidenbenz, PPT-SASMM: Scalable Analytical Shared Memory
// Model, MEMSYS 2020, §3.2 and §3.3. It is here to be compared with the division by iterations in
// package multicore, and for those who have PPT's files.
//
// The unit is the execution of a basic block, which the paper calls a window. There are no
// iterations, no schedules of loops and no barriers:
//
//   - Algorithm 1 makes a private trace for each core ([Private]). A parallel block that ran once is copied
//     to every core. The executions of other parallel blocks are divided, each block by itself, into one
//     contiguous part a core, or by chunks in turn. Blocks outside of parallel regions go to core 0. On
//     cores other than core 0, private addresses move to addresses of the core's own.
//   - Algorithm 2 makes the trace that the cores present to a shared cache ([Shared]). It follows
//     the private trace of core 0, and replaces its n-th execution of a parallel block by the n-th
//     executions of that block on all cores, reference by reference, in turn or at random. So
//     blocks are in the order of core 0.
//
// Both traces read as if a capture had made them: Thread is the number of the core.
//
// # As printed, and by region
//
// The paper counts a block's executions over the whole trace. So core 0 executes the first parallel regions
// and the last core the last ones, and a block that runs once in each region is copied to all cores only if
// there is one region. [Options.PerRegion] counts within each region, and changes nothing else.
//
// # Gaps and errors in the paper
//
//   - "each_core_trace ← trace[windows]" in a loop over blocks would overwrite; appending would sort the
//     trace by block. The text ("the sequence of basic blocks in the mimicked trace is retained from the
//     sequential trace") and the authors' program (reuse_profile_bb_i_shared_mem_…V8-all.py of
//     PPT-SASMM_Scripts), which sorts the windows of a core by their place in the trace, show the intention:
//     executions keep the order of the sequential trace.
//   - array_divide is not given. As in the authors' program, parts differ by at most one, and the
//     first cores have the larger ones. Fewer executions than cores go to the first cores, one
//     each. Chunk i is core i mod m's.
//   - Schedules other than static are said to take too much effort to record. Dynamic, with executions of
//     equal length, deals out chunks in turn, and so is chunks of that size. Guided gives the core that is
//     free first a chunk of the remaining executions divided by the cores, and at least Chunk.
//   - Which blocks are parallel is a list of an "offline code analysis tool". Here it is the blocks that ran
//     between the marks of a parallel region. A block that ran inside and outside (of a function that is
//     called from both) is parallel in all its executions as printed, and by region in those inside.
//   - Round robin sets tr_id to 0 before the loop, adds 1 before the first reference is taken, and
//     lets it become num_traces, which is no trace. The text has core 0, 1, 2, 3, and again. So
//     each n-th execution begins with core 0.
//   - Both strategies pop from empty traces. Here such cores are skipped; the random order chooses among the
//     cores that have references left with equal probability. (The authors' program puts whole executions
//     one behind the other, or shuffles their references, which loses each core's order.)
//   - Algorithm 2 stops at core 0's number of executions, and loses further executions of other
//     cores. No static division gives another core more. Where guided does, the rest follows core
//     0's last execution, by n as before: nothing is lost.
//   - Copies of blocks that ran once count as executions of each core, and are interleaved like others.
//   - The offset is the difference of the highest and lowest address in the authors' program, so that one
//     core's addresses end where the next core's begin, and their lines may meet. Here core c's addresses
//     differ in bits 48 to 53, which contain c: no two meet, and cache sets and offsets in lines stay.
//   - In the authors' program, addresses are shared, not references: each address that occurs in a block
//     labelled as shared, wherever it is referenced ([Files.Ranges]). The paper can also be read so that
//     only the references under the labels are shared. Without labels, the stack below its end at the fork
//     is private; outside of regions, which matters only as printed, at the last fork.
//   - A call interrupts a block, and the code after it is a block by itself, as in [trace.Block].
//     In PPT's traces the callee is within the block; their scripts take such files apart first
//     (bb_overlap_solver.py), with the same effect.
//
// # Memory
//
// How often a block ran is only known at the end. So the counted part is kept in memory: the region, or as
// printed the whole trace, at two or three bytes a reference for regular addresses, and up to ten more for
// others. [Options.LimitBytes] bounds it. By region, accesses outside of regions are not kept.
package sasmm
