// Package blocks computes how often the basic blocks of a program execute, from its branch
// probabilities. For the probabilities of a recorded run, the results are the exact counts of that
// run. For other probabilities, the results predict the counts of a run with a different input.
//
// The package implements the linear model of "average bracketed forms" (Santhi and Chennupati,
// Compute Node Models, LA-UR-17-20754, part 1; MODELS §12). If P_ij is the probability that block i
// continues with block j, the number of executions of block j is
//
//	N_j = Σ P_ij N_i + entries of j
//
// The paper assumes that each function is entered once, at its first block. This package differs
// from the paper as follows:
//
//  1. In a [System], each block has integer weights: one for each successor, and one for leaving
//     the function. The weights are execution counts of a run ([FromEdges]), weights from a
//     compiler's profile ([FromProfile]), or numbers that a user wrote in a branch-probability file
//     ([Sheet]). The numbers in a file may depend on parameters ([Model]). Weights are divided only
//     at the end: the ratio 999,999,999 to 1 is exact, but the floating-point number 0.999999999 is
//     not.
//  2. Subtraction-free elimination computes the number of visits of each block per invocation of
//     its function (Grassmann, Taksar and Heyman, Regenerative Analysis and Steady State
//     Distributions for Markov Chains, 1985). Ordinary elimination divides by 1 − P, where P is the
//     probability that a loop continues. For a loop of 10^9 iterations, only seven of sixteen
//     digits of 1 − P are correct; for three such nested loops, none are. Subtraction-free
//     elimination computes the pivot of a block as a sum: the block's weight for leaving the
//     function, plus the weights of its edges to blocks that are not yet eliminated. Sums, products
//     and quotients of positive numbers lose accuracy only in the last digits (O'Cinneide,
//     Entrywise perturbation theory and error analysis for Markov chains, 1993). Blocks are
//     eliminated in postorder of a depth-first search, so that edges lead only to headers of outer
//     loops. The elimination of a function then takes n·d steps, where n is the number of blocks
//     and d is the nesting depth of loops. Irreducible graphs take more steps.
//  3. The number of invocations of each function is computed for one strongly connected component
//     of the call graph at a time, callers first. Each execution of a block calls the function that
//     the block's field Callee names. All other invocations (of main, of callbacks and through
//     pointers) are inputs, called entries. If a recursive function calls itself C times per
//     invocation on average, the solution divides by 1 − C, and the recursion diverges unless
//     C < 1. Rational numbers are used if floating point is too imprecise to decide whether the
//     recursion diverges. If the weights come from a recorded run, the number of invocations is not
//     computed, but taken from the run.
//  4. The counts are rounded and checked against the equations in integer arithmetic: flows are
//     quotients of 128-bit products, and the remainders are added up as exact fractions. The system
//     has a unique solution, so integer counts that satisfy all equations are exact. [Solution]
//     lists the functions whose counts are proven to be exact. If the rounded counts do not satisfy
//     the equations, a correction is computed from the residual (iterative refinement). For counts
//     that are not integers, for example after a branch with probability 1/3, [Solution.Error]
//     bounds the error.
//
// Exceptions, longjmp and program exits can end an invocation in the middle of a function. Basic
// blocks are therefore split after calls (package ir), and the part before the split has a weight
// for leaving the function. A block that has no successors always leaves the function, even if its
// weight for leaving is 0. A longjmp, or an exception from outside the program, can also enter a
// block without following an edge. Executions of blocks that are entered in this way are counted in
// [Edges.Resumed].
//
// Each execution of a block executes the same instructions. The number of instructions in the run
// is therefore the sum, over all blocks, of the block's instructions multiplied by its count
// ([Work]). [System.Sensitivity] computes the derivative of this sum with respect to each branch
// probability. [NewMatch] matches the blocks of a run with the blocks of a module, and detects that
// the run and the module come from different builds.
package blocks
