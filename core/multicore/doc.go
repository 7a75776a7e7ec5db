// Package multicore synthesises the threads of an OpenMP program, for any number of cores, from the
// trace of a single-threaded run. The method follows PPT-SASMM (Barai, Chennupati, Santhi, Badawy,
// Arafa, Eidenbenz, MEMSYS 2020), but avoids most of its error.
//
// A single-threaded run does all of the program's work. The trace of a single-threaded run contains
// the beginnings and ends of parallel regions, the worksharing loops with their schedules, and the
// barriers. The work can therefore be divided among cores afterwards:
//
//  1. The trace is read once. References outside regions are passed to core 0 immediately. The
//     records of a region are stored in a buffer (package tape) up to the next barrier or the end
//     of the region. The records in the buffer form a phase.
//  2. At the end of a phase, the number of iterations of each worksharing loop is known. The
//     iterations are divided according to OpenMP's schedules; every core executes the code of the
//     region that is outside worksharing loops (division.go).
//  3. Each core reads its part of the records in the buffer. A thread's private addresses are moved
//     to addresses that belong to the core (private.go).
//  4. The records of the cores are merged into one trace, in a selected order (package interleave),
//     as if the program had been traced with one thread per core.
//
// [Options.Division] can select the paper's own method of division instead.
//
// # Rules
//
// Records: the trace must contain the runtime's marks (package ir, trace.ParallelBegin and so on)
// and blocks. To record such a trace, compile the program with `stackglass cc` and -fopenmp, and
// run the program with OMP_NUM_THREADS=1. For one core, the result is identical to the trace.
//
// Regions: a nested fork creates a region with a single thread, which the forking core executes. An
// OpenMP runtime behaves in the same way unless max-active-levels is set. A league consists of a
// single team, as is the default in LLVM's runtime. The block to which a fork returns is outside
// the region, although the region's ParallelEnd follows the BlockEntry of this block. The block to
// which a barrier returns belongs to the phase after the barrier. Worksharing loops end with a
// barrier unless the program specifies nowait. Compilers generate a separate call for the barrier.
// If a reduction waits for other threads, it does so within the runtime, without a mark in the
// trace.
//
// Iterations (looprun.go, shape.go) are occurrences of a loop's header in the function that calls
// the runtime to divide the loop among the threads. The header is one loop level deeper than the
// call. If there is a loop over chunks, the header is two levels deeper. Such a loop exists in
// static schedules with a chunk size, and in all schedules in which the runtime distributes the
// chunks. In a single-threaded run, all iterations are in one chunk. Each core executes the code
// before and after the iterations once for each of its chunks. The loop over chunks tests whether
// there is another chunk. In unoptimised code, the test precedes the chunk. The single-threaded run
// then executed the test twice: the test succeeded before the only chunk, and failed after this
// chunk. Each core executes the successful test for each of its chunks, and the failed test once.
// If the last chunk is shorter than the other chunks, the code before the last chunk starts on the
// path of the failed test. After the last block that the paths of both tests have in common, the
// code continues on the path of the successful test. In a rotated loop, the test follows the chunk.
// The single-threaded run then executed only the failed test, whose references are used for the
// successful tests, too. If the loop's exit test is not at the end of an iteration, each iteration
// begins after one test and includes the next test. A core without iterations skips the code before
// and after the iterations if the program contains a path around this code.
//
// Schedules (schedule.go) follow LLVM's runtime. In static schedules, each core executes one
// contiguous part of the iterations or, with a chunk size, every n-th chunk, where n is the number
// of cores. If the number of iterations is not a multiple of the number of cores, the first parts
// are one iteration longer. In guided schedules, each chunk contains 1/(2·cores) of the remaining
// iterations, but at least the number of iterations that the chunk size specifies. Dynamic and
// guided chunks are assigned to the core with the earliest clock; of several such cores, the first
// is chosen. Clocks start at 0 at the beginning of the loop. If [Options.Order] contains the cycles
// of each block, the clocks count cycles. Otherwise, the clocks count data references. A dynamic
// schedule is nonmonotonic unless the program specifies otherwise: each thread begins with its own
// part, as in a static schedule. A thread that has finished its part steals chunks from the ends of
// other threads' parts. The initial parts are the same as in a real run, but stealing depends on
// timing. If [Options.Schedule] is dynamic, there are no initial parts: each chunk is assigned to
// the core with the least work. The schedule auto is treated as static here, although LLVM's
// runtime treats auto as guided.
//
// Code for one thread: core 0 executes single, master and masked constructs; the other cores
// execute only the test that decides which thread executes the construct. A sections construct is
// treated as a loop over its sections. Critical sections, locks, ordered loops and tasks are
// executed at the positions where the recorded run executed them, without waiting. [Report.Doubts]
// counts these constructs. In a reduction, each core adds its partial result to the total. The
// recorded run loads and stores the total. A modify replaces this load and this store, because the
// threads of real teams of up to four threads modify the total atomically. Real teams of more than
// four threads combine their partial results in pairs, in a function that the recorded run never
// calls.
//
// Private addresses (private.go) are the addresses on the stack below the stack pointer of the
// forking function. For core c, 2^48·c + 64·c is added to each private address. Programs do not use
// addresses above 2^48, so the addresses of different cores never collide. As in LLVM's runtime,
// the stack frames of each core are one cache line higher than the stack frames of the previous
// core, so that the stacks do not compete for the same cache sets. Memory blocks that are allocated
// within a region keep their addresses, because threads may share them.
//
// A test in tools/capture compares the result with real threads: with static schedules, each core
// executes exactly the same references as its thread.
package multicore
