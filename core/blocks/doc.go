// Package blocks computes how often the blocks of a program run, from its branch probabilities.
// From the probabilities of a run, it computes the run's counts as integers. From other
// probabilities, it computes the counts for an input that was not run.
//
// This is the linear model of "average bracketed forms": Santhi and Chennupati, Compute Node
// Models (LA-UR-17-20754), part 1; MODELS §12. With P_ij the probability that block i continues
// with block j,
//
//	N_j = Σ P_ij N_i + entries of j
//
// where the paper has one entry to the first block of each function. This package differs as
// follows:
//
//  1. A [System] has an integer weight for each successor of a block, and one for leaving the
//     function. The weights are counts of a run ([FromEdges]), weights from a compiler's profile
//     ([FromProfile]), or numbers in a [Sheet] written by a person, which may depend on parameters
//     ([Model]). Quotients are formed only at the end, because 999,999,999 to 1 is exact and
//     0.999999999 as a float is not.
//  2. The visits of a function's blocks per invocation are solved for by elimination without
//     subtraction (Grassmann, Taksar and Heyman, Regenerative Analysis and Steady State
//     Distributions for Markov Chains, 1985). Ordinary elimination divides by 1 − P, which keeps
//     seven of sixteen digits for 10^9 iterations, and none for three such loops in each other.
//     Here, the pivot is a sum: the block's weight of leaving the function, plus the weights of its
//     edges to blocks that are not yet eliminated. Sums, products and quotients of positive numbers
//     lose only the last digits (O'Cinneide, Entrywise perturbation theory and error analysis for
//     Markov chains, 1993). Blocks are eliminated in postorder of a depth-first search, so that
//     edges lead only to headers of outer loops. A function of n blocks in loops nested d deep then
//     takes n·d steps; irreducible graphs take more.
//  3. The invocations of functions are solved for by strongly connected components of the call
//     graph, callers first. A block calls its Callee each time it runs. Other invocations (of main,
//     of callbacks and through pointers) are inputs, called entries. If a recursive function calls
//     itself C times per invocation on average, 1 − C is needed, and the recursion diverges unless
//     C < 1. If floating point is too imprecise to decide whether it diverges, rational numbers are
//     used or, for a run, its known numbers of invocations.
//  4. The counts are rounded and checked against the equations in integer arithmetic: flows are
//     128-bit products that must divide without a remainder. The system has only one solution, so
//     integers that satisfy it are the solution. [Solution] says for which functions this is
//     proven. Otherwise, the residual gives the next correction (iterative refinement). Counts that
//     are not integers, as after a branch of probability 1/3, have the error [Solution.Error].
//
// Exceptions, longjmp and the end of the program end invocations in the middle of a function. Basic
// blocks are therefore split after calls (package ir), and the part before the split has a weight
// of leaving. Executions always leave the function at blocks with neither successors nor such a
// weight. longjmp, and exceptions from outside, also reach blocks without following an edge. These
// are counted as entries of the blocks (Resumed).
//
// The work of a block is the same in each execution, so the counts times the blocks' instructions
// are the instructions of the run ([Work]). A branch's influence on the total is a derivative
// ([System.Sensitivity]). [NewMatch] matches the blocks of a run with the blocks of a module, and
// detects when they are different builds.
package blocks
