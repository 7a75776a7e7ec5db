// Package blocks computes how often the blocks of a program run, from how often its
// branches are taken: a program's text and a number for each branch give the counts
// of everything in it, without a run; with the numbers of a run, that run's counts,
// as integers; with others, those of an input that nobody ran.
//
// This is the linear model of "average bracketed forms": Santhi and Chennupati,
// Compute Node Models (LA-UR-17-20754), part 1; MODELS §12. With P_ij the probability
// that block i goes on to block j,
//
//	N_j = Σ P_ij N_i + entries of j
//
// where the paper gives one entry to the first block of each function. Here it is
// as follows.
//
//  1. A [System] holds, for each block, an integer weight for each way on and one for
//     leaving the function: counts of a run ([FromEdges]), weights of a compiler's
//     profile ([FromProfile]), or what a person writes in a [Sheet], where numbers may
//     follow from parameters ([Model]). Quotients are never formed before
//     the end: 999,999,999 to 1 is exact, and 0.999999999 as a float is not.
//  2. Each function is solved for the visits of its blocks per invocation by
//     elimination without subtraction (Grassmann, Taksar and Heyman, Regenerative
//     Analysis and Steady State Distributions for Markov Chains, 1985). Ordinary
//     elimination divides by 1 − P, which at a trip count of 10^9 keeps seven
//     digits of sixteen, and of three nested ones none. Here the pivot is a sum: the
//     weight by which the block leaves, plus those of its ways to blocks that are
//     not yet eliminated. Sums, products and quotients of positive numbers keep all
//     digits but a few of the last (O'Cinneide, Entrywise perturbation theory and
//     error analysis for Markov chains, 1993). Blocks are eliminated in postorder of
//     a depth-first search, so that ways lead to headers of loops around only, and a
//     function of n blocks in loops d deep takes n·d steps; other graphs take more.
//  3. Functions are solved for their invocations, callers before callees, by
//     strongly connected components of the call graph. A block calls what its Callee
//     names each time that it runs. Invocations that no such call makes — main's,
//     callbacks', those through pointers — are given: entries. In recursion a
//     function calls itself C times a visit on average, and there 1 − C must be
//     formed: it diverges from C = 1 on. In the range where floating point does not
//     tell, rational numbers do; of a run, the invocations themselves stand in for
//     them.
//  4. The counts are rounded and held against the equations in integers: flows are
//     products of 128 bits, divided without a rest. The system has one solution, so
//     that integers which fulfil it are it, whatever the rounding on the way: [Solution]
//     says of which functions that is proven. Where the residual is not zero it
//     gives the next correction (iterative refinement), so that large counts come out
//     too. Counts that are no integers, as a branch of 1/3 has, have the error that
//     [Solution.Error] bounds.
//
// Exceptions, longjmp and the end of the program end invocations in the middle of a
// function. So basic blocks are cut after calls (package ir), and the piece before
// has a weight for leaving. Blocks with neither a way on nor such a weight leave
// always. longjmp, and exceptions that come from outside, also bring executions to
// blocks that no way leads to: they are entries of these blocks (Resumed).
//
// What a block does each time it runs is the same, so that its counts times its
// instructions are those of the run ([Work]). A branch's part in the total is a
// derivative ([System.Sensitivity]). A run's edges come to the text of a module by
// [NewMatch], which tells when the two are of different builds.
package blocks
