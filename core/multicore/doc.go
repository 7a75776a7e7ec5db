// Package multicore synthesises the threads of an OpenMP program, for any number of cores, from the
// trace of a single-threaded run. The method follows PPT-SASMM (Barai, Chennupati, Santhi, Badawy,
// Arafa, Eidenbenz, MEMSYS 2020), but avoids most of its error.
//
// A single-threaded run does all of the program's work. Its trace contains the beginnings and ends
// of parallel regions, the worksharing loops with their schedules, and the barriers. The work can
// therefore be divided afterwards:
//
//  1. The trace is read once. Code outside regions is passed to core 0 immediately. A region's rows
//     are stored in a buffer (package tape) up to the next barrier or the region's end. These rows
//     form a phase.
//  2. At the end of a phase, the number of iterations of each worksharing loop is known. The
//     iterations are divided according to OpenMP's schedules; every core executes the rest of the
//     region (division.go).
//  3. Each core reads its part of the buffer. A thread's private addresses are moved to addresses
//     that belong to the core (private.go).
//  4. The cores' rows are merged into one trace, in a chosen order (package interleave), as if the
//     program had been traced with one thread per core.
//
// [Options.Division] can select the paper's own method instead.
//
// # Rules
//
// Rows. The trace must contain the runtime's marks (package ir, trace.ParallelBegin and so on) and
// blocks. To record it, compile the program with `stackglass cc` and -fopenmp, and run it with
// OMP_NUM_THREADS=1. For one core, the result is the trace itself, row for row.
//
// Regions. A nested fork creates a region with a single thread, which the forking core executes.
// OpenMP does the same unless max-active-levels is set. A league of teams has a single team, which
// is LLVM's default. The block to which a fork returns is outside the region, although the region's
// ParallelEnd follows the BlockEntry of this block. The block to which a barrier returns belongs to
// the next phase. Worksharing loops end with a barrier unless the program specifies nowait.
// Compilers generate a separate call for the barrier. A reduction that waits for other threads does
// so within the runtime, without a mark in the trace.
//
// Iterations (looprun.go, shape.go) are occurrences of a loop's header in the function that calls
// the runtime to share the loop. The header is one loop level deeper than the call, or two levels
// if there is a loop over chunks (in static schedules with a chunk size, and in all schedules in
// which the runtime hands out chunks). In a single-threaded run, all iterations are in one chunk.
// Each core executes the code before and after the iterations once for each of its chunks. A test
// decides whether there is another chunk. In unoptimised code, the test precedes the chunk. The run
// executed it twice: it succeeded the first time, and failed the second time. Each core then
// executes the first test for each of its chunks, and the second test once. If the last chunk is
// shorter, the code before it begins like the second test, up to the last block that both tests
// have in common, and continues like the first test. In a rotated loop, the test follows the chunk.
// The run then executed only the failed test, which represents all tests. If the test can leave the
// loop, each iteration includes the test after it. A core without iterations skips the code before
// and after the iterations if the program contains a path around this code.
//
// Schedules (schedule.go) follow LLVM's runtime. In static schedules, the cores have contiguous
// parts, or take chunks in turn. If the parts cannot be equal, the first parts are one iteration
// longer. In guided schedules, a core takes 1/(2·cores) of the remaining iterations, but at least
// the chunk size. Dynamic and guided chunks are assigned to the first of the cores with the
// earliest clock. Clocks start at 0 at the beginning of the loop, and count the data references of
// its iterations, or the cycles of blocks if Order contains them. A dynamic schedule is
// nonmonotonic unless the program specifies otherwise: each thread begins with its own part, as in
// a static schedule. When it has finished, it steals from the ends of other threads' parts
// (thieves). The parts are exact, but which thread steals depends on timing in a real run. With
// dynamic in [Options.Schedule], there are no parts: each chunk is assigned to the core with the
// least work. The schedule auto is treated as static here, but the runtime treats it as guided.
//
// Code that one thread executes on behalf of all. Core 0 executes single, master and masked
// constructs; the other cores execute only the test. Sections are treated as a loop over sections.
// Critical sections, locks, ordered loops and tasks are executed where the run executed them,
// without waiting; [Report.Doubts] counts them. In a reduction, each core adds its part to the
// result: the loads and stores of the recorded run become modifications, as in teams of up to four
// threads. Larger teams add in pairs, in a function that the recorded run never calls.
//
// Private addresses (private.go) are the addresses on the stack below the stack pointer of the
// forking function. For core c, they are moved up by c·2^48 bytes. No program uses such addresses,
// and no reference moves to another set of any cache. Objects allocated within a region keep their
// addresses, because they may be shared.
//
// A test in tools/capture compares the result with real threads: with static schedules, each core's
// rows equal the rows of its thread exactly.
package multicore
