// Package sasmm synthesises the traces of m cores with Algorithms 1 and 2 exactly as printed in the
// PPT-SASMM paper (Barai, Chennupati, Santhi, Badawy, Arafa, Eidenbenz, PPT-SASMM: Scalable
// Analytical Shared Memory Model, MEMSYS 2020, §3.2 and §3.3). The package is meant for comparison
// with the division by iterations in package multicore, and for users of PPT's files.
//
// The unit of division is the execution of a basic block, which the paper calls a window. The
// algorithms do not consider iterations, loop schedules or barriers:
//
//   - Algorithm 1 creates a private trace for each core ([Private]). A parallel block that ran once
//     is copied to every core. The executions of every other parallel block are divided into one
//     contiguous part per core, or into chunks that are assigned round-robin. Blocks outside of
//     parallel regions are executed by core 0. On the other cores, private addresses are moved to
//     an address range of the core.
//   - Algorithm 2 creates the trace that the cores present to a shared cache ([Shared]). The
//     algorithm follows the private trace of core 0, and replaces core 0's n-th execution of a
//     parallel block by the n-th executions of that block on all cores. The references of these
//     executions are interleaved round-robin or at random. The blocks are therefore in the order in
//     which core 0 executes them.
//
// The private traces and the shared trace have the form of recorded traces. The thread number of a
// record is the number of the core that makes the reference.
//
// # The paper's division and the division by region
//
// The paper counts a block's executions over the whole trace. As a result, core 0 executes the
// parallel regions at the beginning of the run, and the last core executes the parallel regions at
// the end. A block that runs once in each region is copied to all cores only if there is a single
// region. [Options.PerRegion] counts executions within each region; the rest of the method is the
// same.
//
// # Gaps and errors in the paper
//
//   - "each_core_trace ← trace[windows]" in a loop over blocks would overwrite the trace, and
//     appending would sort the trace by block. However, the text of the paper states that
//     executions keep the order of the sequential trace, and the authors' program
//     (reuse_profile_bb_i_shared_mem_…V8-all.py of PPT-SASMM_Scripts) sorts the windows of a core
//     by their position in the trace.
//   - The paper does not define array_divide. As in the authors' program, the sizes of the parts
//     differ by at most one, and the first cores execute the larger parts. If there are fewer
//     executions than cores, each execution is assigned to one of the first cores. Chunk i is
//     assigned to core i mod m.
//   - The paper omits schedules other than static, because other schedules take too much effort to
//     record. If all executions take the same time, a dynamic schedule assigns chunks round-robin,
//     like a static schedule with the same chunk size. A guided schedule assigns chunks to the core
//     that is free first. The size of a chunk is (remaining executions / cores), but at least
//     Chunk.
//   - In the paper, an "offline code analysis tool" lists the parallel blocks. Here, a block is
//     parallel if it ran between the marks of a parallel region. If a block ran both inside and
//     outside of regions, because its function was called from both, the paper's division treats
//     all executions of the block as parallel. The division by region treats only the executions
//     inside of regions as parallel.
//   - The round-robin strategy sets tr_id to 0 before the loop, but adds 1 before it takes the
//     first reference. In addition, tr_id reaches num_traces, which is not a valid trace number.
//     According to the text, the order of cores is 0, 1, 2, 3, 0 and so on. Therefore, when this
//     package interleaves the n-th executions of a block, the first reference is a reference of
//     core 0.
//   - The round-robin and random strategies both pop references from empty traces. Here, cores with
//     empty traces are skipped; the random order chooses among the other cores with equal
//     probability. (The authors' program concatenates whole executions, or shuffles their
//     references, which loses the order on each core.)
//   - Algorithm 2 stops after core 0's last execution, and loses any further executions of other
//     cores. With a static division, no core has more executions than core 0. With a guided
//     schedule, a core may have more executions than core 0. Here, the additional executions follow
//     core 0's last execution, still in ascending order of n, so nothing is lost.
//   - Copies of blocks that ran once count as executions on each core, and are interleaved like
//     other executions.
//   - In the authors' program, the offset between cores is the difference between the highest and
//     the lowest address. The addresses of one core therefore end where the addresses of the next
//     core begin, and both cores may use the same line. Here, bits 48 to 53 of private addresses
//     contain the core's number. Different cores never share a line, and the cache set and the
//     offset within the line do not change.
//   - In the authors' implementation, an address counts as shared everywhere in the trace if it
//     occurs in a block that is labelled as shared ([Ranges]). According to another reading of the
//     paper, only the references in labelled blocks are shared. Without labels, the part of the
//     stack below the stack pointer at the fork is private. Outside of regions, the stack pointer
//     at the last fork is used; this matters only for the paper's division.
//   - A call ends a block, and the code after the call is a separate block, as in [trace.Block]. In
//     PPT's traces, the callee's blocks are nested in the caller's block. PPT's script
//     bb_overlap_solver.py splits these nested blocks first, which has the same effect.
//
// # Memory
//
// The number of executions of a block is known only at the end of the region or trace. For the
// division by region, each whole region is therefore kept in memory, but accesses outside of
// regions are not. For the paper's division, the whole trace is kept in memory. A reference
// occupies two or three bytes if its address is regular, and up to ten more bytes otherwise.
// [Options.LimitBytes] limits the memory.
package sasmm
