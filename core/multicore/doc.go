// Package multicore synthesises the threads of an OpenMP program, for any number of cores, from
// the trace of a run with one thread: PPT-SASMM (Barai, Chennupati, Santhi, Badawy, Arafa,
// Eidenbenz, MEMSYS 2020), without most of its error.
//
// A run with one thread does all of the program's work. Its trace contains the begin and end of
// parallel regions, the loops whose iterations are shared and their schedules, and barriers. So
// the work can be divided afterwards:
//
//  1. The trace is read once. Core 0 executes code outside of regions immediately. A region's rows
//     go to a buffer (package tape) until the next barrier or the region's end: a phase.
//  2. At the end of a phase the number of iterations of each worksharing loop is known. They are
//     divided by OpenMP's schedules; every core executes the rest of the region (division.go).
//  3. Each core reads its part of the buffer. Private addresses of a thread are moved to
//     addresses of the core's own (private.go).
//  4. The cores' rows become one trace, in a chosen order (package interleave), as if the program
//     had been traced with that many threads.
//
// [Options.Division] can select the paper's own method instead.
//
// # Rules
//
// Rows. The trace has the runtime's marks (package ir, trace.ParallelBegin and so on) and blocks:
// `stackglass cc` with -fopenmp, the program run with OMP_NUM_THREADS=1. One core executes the
// trace row for row.
//
// Regions. A fork within a region creates one with one thread, as in OpenMP unless
// max-active-levels is set: the core that forks executes it. A league of teams has one team, which
// is LLVM's default. The block that a fork returns to is after the region, though its ParallelEnd
// follows its BlockEntry; the block that a barrier returns to belongs to the next phase.
// Worksharing loops end with a barrier unless the program says nowait; compilers call it
// separately. Reductions that wait do so within the runtime, without a mark.
//
// Iterations (looprun.go, shape.go) are occurrences of a loop's header in the function that calls
// the runtime to share the loop, one depth of loops deeper than the call; two with a loop over
// chunks (static with a chunk, and all schedules where the runtime hands out chunks). A run with
// one thread has all iterations in one chunk, so that the code before and after them is executed
// for each chunk of a core. If the test for another chunk precedes the chunk (not optimised), the
// run executed it twice, with both outcomes: each core executes the first one for each of its
// chunks, and the second one once. A last chunk that is shorter reaches the test as the second one
// did, and continues as the first. In a rotated loop, where the test follows the chunk, there is
// only the failed test, which stands for all. If the test can leave the loop, each iteration
// includes the test after it. A core without iterations skips the code around them, if the program
// has a way past it.
//
// Schedules (schedule.go) are as in LLVM's runtime. Static: contiguous parts, the first of
// which are longer by one if they are uneven; or chunks in turn. Guided: the 2·cores-th part of
// the remaining iterations, at least a chunk. Dynamic and guided chunks go to the first core with
// the least clock: clocks begin at 0 with the loop and count data references of its iterations,
// or cycles of blocks if Order has them. A dynamic schedule is nonmonotonic unless the program
// says otherwise: each thread begins with a part of its own, as if static, and steals from the
// ends of others' parts when it is done (thieves). The parts are exact; who steals depends on
// timing in a real run. [Options.Schedule] dynamic has no parts: each chunk goes to the core with
// the least work. auto is static here, and guided in the runtime.
//
// Code that one thread executes for all. Core 0 executes single, master and masked; the other cores
// only test whether they may. Sections are a loop over sections. Critical sections, locks, ordered
// loops and tasks are executed where the run executed them, without waiting; [Report.Doubts] counts
// them. Each core adds its part of a reduction: the run's loads and stores for it become
// modifications, as in teams of up to four threads. Larger teams add in pairs, in a function that
// the run never calls.
//
// Private addresses (private.go) are on the stack below the stack pointer of the function that
// forks. They are c·2^48 bytes higher for core c, which no program's address is and which keeps
// every reference in its set of every cache. Objects that are allocated within a region stay where
// they were, since they may be shared.
//
// A test in tools/capture compares with real threads: with static schedules, each core's rows are
// exactly the rows of its thread.
package multicore
