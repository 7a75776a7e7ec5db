// Package blocksample estimates hit ratios of the cores' caches from a part of a synthesised trace,
// block by block, as PPT-SASMM does (MODELS §14.3; Barai et al., MEMSYS 2020, §3.4 to §3.6):
//
//  1. A window is an execution of a basic block. A sample of the windows of each block gives its
//     conditional reuse profile P(D|BB_i) (Algorithm 3; [Collector]). With [sasmm.Private] each
//     core has a stack of its own, with [sasmm.Shared] there is one for all. Any other trace
//     with threads works too.
//  2. P(BB_i) is the weight of a block, from its executions in the sequential run: eq. 1 for a
//     shared cache ([ForShared]), eq. 2 and 3 for private ones ([ForPrivate]).
//  3. P(D) = Σ P(BB_i) P(D|BB_i) is the profile of the whole (eq. 4; [Stack.Profile]).
//  4. P(h) = Σ P(D) P(h|D), with the stack distance cache model for P(h|D), is the hit rate (eq. 5
//     to 7; [Stack.Rate]). [Of] computes the mean over all caches of a level and the rate by
//     accesses, with intervals and sample sizes.
//
// In a prediction (package predict) blocks are weighted by their counted accesses unless the
// equations are selected. The equations approximate these weights, so that only the errors of
// sampling and of the stack distance cache model remain.
//
// For a larger input, package larger predicts the counts, and keeps the profiles of a small run
// or follows their distances from run to run.
//
// # Errata
//
//   - Eq. 1 counts executions. P(D) is over references, so that a block with r_i references per
//     execution has the weight N_i r_i ([Corrected]). [Printed] is as printed.
//   - Eq. 2 and 3 have different denominators, Σ_ser + Σ_par and Σ_ser + Σ_par/m, so that
//     probabilities do not sum to one: with half of the executions parallel and four cores, to
//     1/2 + (1/8)/(5/8) = 0.70. Core 0 has the serial blocks and a share of the parallel ones: both
//     have the second denominator. Other cores have parallel blocks alone, which sum to one over
//     Σ_par/m. The authors' program does so, too (reuse_profile_bb_i_shared_mem_…V8-all.py).
//   - The equations do not say which core they are for. [Printed] gives serial blocks to core 0
//     only: others have no window of them, and Algorithm 3 returns nothing. The weights then sum to
//     less than one, and rates are divided by the sum; [Rate.Weight] is the sum, and HitRate ×
//     Weight eq. 7 to the letter.
//   - "Typically we randomly select 1 % samples of basic block windows" is none for a block that
//     ran fifty times, and the authors' program takes ten of each block. Here it is 1 % and at
//     least 30, or as in [Looked].
//   - get_rd searches the trace. Distances here are exact, from a stack of all references;
//     sampling selects those that count.
//   - A call interrupts a window: the code after it is a block of its own ([trace.Block]).
//   - Blocks that ran once are copied to every core, but count N_i/m in eq. 3. This does not
//     matter for large counts; [Stack.Counted] is exact.
//
// # Confidence intervals
//
// Windows are clusters of references, so that the rate of a block is a ratio of sums over windows
// with the variance of a ratio estimator (Cochran, Sampling Techniques, 1977, §6.4), times the
// share of windows outside of the sample. Blocks are strata: their weighted variances add up. Many
// windows of a block form 64 groups, which vary as windows do (random groups: Wolter, Introduction
// to Variance Estimation, 2007, §2.3). The errors of the synthesised trace and of the stack
// distance cache model are not included.
package blocksample
