// Package sasmm mimics the traces of m cores as PPT-SASMM prints it: Algorithms 1 and 2
// of Barai, Chennupati, Santhi, Badawy, Arafa, Eidenbenz, PPT-SASMM: Scalable Analytical
// Shared Memory Model, MEMSYS 2020, §3.2 and §3.3. It stands beside the division by
// iterations of package multicore to compare the two, and for those who have PPT's files.
//
// The unit is the execution of a basic block, which the paper calls a window. It knows no
// iterations, no schedules of loops and no barriers:
//
//   - Algorithm 1 makes a private trace of each core ([Private]). A parallel block that ran
//     once is copied to every core. One that ran several times has its executions divided,
//     each block by itself, into one contiguous part a core, or by chunks in turn. Blocks
//     outside of parallel regions go to core 0. What is private moves, on cores other than
//     core 0, to addresses of the core's own.
//   - Algorithm 2 makes the trace that the cores give a shared cache ([Shared]). It goes
//     through the private trace of core 0, and puts in place of its n-th execution of a
//     parallel block the n-th executions of that block on all cores, reference by
//     reference in turn or by chance. So the order of blocks is that of core 0.
//
// Both traces are read as if a capture had made them: Thread is the number of the core.
//
// # As printed, and by region
//
// The paper counts a block's executions over the whole trace, so that core 0 gets those of
// the first parallel regions and the last core those of the last; and what runs once in
// each region is copied to all cores only if there is one region. [Options.PerRegion]
// counts within each region, which is all that it changes.
//
// # What the paper leaves open, or gets wrong
//
//   - "each_core_trace ← trace[windows]" in a loop over blocks would overwrite, and appended
//     to would sort the trace by block. The text ("the sequence of basic blocks in the
//     mimicked trace is retained from the sequential trace") and the authors' program
//     (reuse_profile_bb_i_shared_mem_…V8-all.py of PPT-SASMM_Scripts), which sorts the
//     windows of a core by their place in the trace, say what is meant: executions keep
//     the order of the sequential trace.
//   - array_divide is not given. Parts differ by one at most, and the first cores have the
//     larger ones, as in the authors' program. Executions fewer than cores go to the first
//     cores, one each. With chunks, chunk i is core i mod m's.
//   - Schedules other than static are said to be recorded with too much effort. Dynamic
//     with executions that all take equally long deals chunks out in turn, and so is
//     chunks of that size. Guided gives the core that is first free a chunk of the
//     executions that are left over the cores, and no fewer than Chunk.
//   - Which blocks are parallel is a list of an "offline code analysis tool". Here it is
//     the blocks that ran between the marks of a parallel region. A block that ran inside
//     and outside (of a function that is called from both) is parallel in all its
//     executions as printed, and by region in those inside.
//   - Round robin sets tr_id to 0 before the loop, adds 1 before the first reference is
//     taken, and lets it become num_traces, which is no trace. The text has core 0, 1, 2,
//     3, and again. So each n-th execution begins with core 0.
//   - Both strategies pop from traces that have nothing left. Here such cores are passed
//     over; by chance, the next reference comes from one of those that have some left, all
//     with equal chances. (The authors' program has neither: it puts whole executions one
//     behind the other, or shuffles their references, which loses each core's order.)
//   - Algorithm 2 goes up to core 0's number of executions, and loses what another core has
//     beyond. No static division gives another core more. Where guided does, the rest
//     comes behind core 0's last execution, by n as before: nothing is lost.
//   - Copies of what ran once are executions of each core, and interleaved as others.
//   - The offset is the difference of the highest and lowest address in the authors'
//     program, so that the end of one core's addresses is the beginning of the next's,
//     and lines of two cores may meet. Here core c's addresses differ in bits 48 to 53,
//     which hold c: no two meet, and sets of caches and places within lines are those of
//     the originals.
//   - Addresses are the unit of what is shared in the authors' program: each that occurs
//     in a block labelled as shared, wherever it is referenced ([Files.Ranges]). The
//     paper can also be read so that the references under the labels are shared, and no
//     others ([Options.Shared]). Where there are no labels, private is the stack below where
//     it ends at the fork; outside of regions, which matters as printed only, at the last
//     fork.
//   - A call interrupts a block, and what follows it is a block by itself, as
//     [trace.Block] has it. In PPT's traces the callee is within the block. Their scripts
//     take such files apart first (bb_overlap_solver.py), with the same effect.
//
// # Memory
//
// How often a block ran is known at the end. So all that is counted over is kept: the
// region, or as printed the whole trace, at two or three bytes a reference where
// addresses go in strides, and up to ten more where they do not. [Options.LimitBytes] bounds it. What is
// outside of regions goes through by region.
package sasmm
