// Package blocks computes how often the blocks of a program run, from its branch probabilities.
// From the probabilities of a run it computes that run's counts, as integers; from other
// probabilities, the counts of an input that was not run.
//
// This is the linear model of "average bracketed forms": Santhi and Chennupati, Compute Node
// Models (LA-UR-17-20754), part 1; MODELS §12. With P_ij the probability that block i continues
// with block j,
//
//	N_j = Σ P_ij N_i + entries of j
//
// where the paper has one entry to the first block of each function. Here:
//
//  1. A [System] has an integer weight for each successor of a block, and one for leaving the
//     function: counts of a run ([FromEdges]), weights of a compiler's profile ([FromProfile]), or
//     a [Sheet] that a person writes, whose numbers may depend on parameters ([Model]). No
//     quotients are formed before the end: 999,999,999 to 1 is exact, 0.999999999 as a float is
//     not.
//  2. Each function is solved for the visits of its blocks per invocation by elimination without
//     subtraction (Grassmann, Taksar and Heyman, Regenerative Analysis and Steady State
//     Distributions for Markov Chains, 1985). Ordinary elimination divides by 1 − P, which keeps
//     seven digits of sixteen for 10^9 iterations, and none for three nested loops. Here the pivot
//     is a sum: the block's weight of leaving, plus the weights of its edges to blocks that are not
//     yet eliminated. Sums, products and quotients of positive numbers lose only the last digits
//     (O'Cinneide, Entrywise perturbation theory and error analysis for Markov chains, 1993).
//     Blocks are eliminated in postorder of a depth-first search, so that edges lead to headers of
//     outer loops only, and a function of n blocks in loops d deep takes n·d steps; other graphs
//     take more.
//  3. Functions are solved for their invocations, callers first, by strongly connected components
//     of the call graph. A block calls its Callee each time that it runs. Other invocations, of
//     main, callbacks and through pointers, are given: entries. In recursion, a function calls
//     itself C times per visit on average, and 1 − C is needed: it diverges from C = 1 on. Where
//     floating point cannot decide, rational numbers do; for a run, its invocations do.
//  4. The counts are rounded and checked against the equations in integers: flows are products
//     of 128 bits, divided without remainder. The system has one solution, so that integers that
//     fulfil it are the solution; [Solution] says for which functions this is proven. Otherwise the
//     residual gives the next correction (iterative refinement). Counts that are no integers, as
//     with a branch of 1/3, have the error [Solution.Error].
//
// Exceptions, longjmp and the end of the program end invocations in the middle of a function.
// Therefore basic blocks are cut after calls (package ir), and the part before has a weight of
// leaving. Blocks with neither successors nor such a weight always leave. longjmp, and exceptions
// from outside, also bring executions to blocks by no edge: entries of these blocks (Resumed).
//
// The work of a block is the same in each execution, so that counts times instructions are the
// instructions of the run ([Work]). A branch's influence on the total is a derivative
// ([System.Sensitivity]). [NewMatch] matches the blocks of a run with the blocks of a module, and
// detects different builds.
package blocks
