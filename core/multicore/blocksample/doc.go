// Package blocksample estimates the hit ratios of the cores' caches from a sample of a synthesised
// trace, block by block, as PPT-SASMM does (MODELS §14.3; Barai et al., MEMSYS 2020, §3.4 to §3.6):
//
//  1. A window is an execution of a basic block. A sample of the windows of each block yields its
//     conditional reuse profile P(D|BB_i) (Algorithm 3; [Collector]). With [sasmm.Private], each
//     core has its own stack; with [sasmm.Shared], all cores share one stack. Any other trace with
//     threads can also be used.
//  2. P(BB_i) is the weight of a block, derived from its executions in the sequential run: eq. 1
//     for a shared cache ([ForShared]), eq. 2 and 3 for private caches ([ForPrivate]).
//  3. P(D) = Σ P(BB_i) P(D|BB_i) is the profile of the whole trace (eq. 4; [Stack.Profile]).
//  4. P(h) = Σ P(D) P(h|D) is the hit ratio (eq. 5 to 7; [Stack.Rate]), where the stack distance
//     cache model yields P(h|D). [Of] computes the mean over all caches of a level and the
//     access-weighted ratio, with confidence intervals and sample sizes.
//
// In a prediction (package predict), blocks are weighted by their counted accesses unless the
// equations are selected. The equations only approximate these weights. With counted accesses, the
// only errors are the errors of sampling and of the stack distance cache model.
//
// For a larger input, package larger predicts the counts. It either keeps the profiles of a small
// run or extrapolates their distances from several runs.
//
// # Errata
//
//   - Eq. 1 counts executions. P(D) is over references, so a block with r_i references per
//     execution has the weight N_i r_i ([Corrected]). [Printed] follows the paper.
//   - Eq. 2 and 3 have different denominators, Σ_ser + Σ_par and Σ_ser + Σ_par/m, so the
//     probabilities do not sum to one. With half of the executions parallel and four cores, they
//     sum to 1/2 + (1/8)/(5/8) = 0.70. Core 0 executes the serial blocks and a share of the
//     parallel blocks, so both equations must have the second denominator. The other cores execute
//     only parallel blocks. With the denominator Σ_par/m, their weights sum to one. The authors'
//     program computes the weights in this way, too (reuse_profile_bb_i_shared_mem_…V8-all.py).
//   - The equations do not specify which core they describe. [Printed] assigns serial blocks only
//     to core 0, because Algorithm 3 returns nothing for the other cores, which have no windows of
//     these blocks. The weights then sum to less than one, so ratios are divided by the sum.
//     [Rate.Weight] is this sum, and HitRate × Weight is eq. 7 exactly as printed.
//   - "Typically we randomly select 1 % samples of basic block windows" selects no window of a
//     block that ran fifty times. The authors' program takes ten windows of each block. The default
//     here is 1 %, but at least 30 windows; see [Looked].
//   - get_rd searches the trace for each distance. Distances are exact here, because the stack
//     contains all references. Sampling only selects the distances that count.
//   - A call ends a window. The code after the call is a separate block ([trace.Block]).
//   - Every core executes the parallel blocks that ran once, but eq. 3 counts them as N_i/m. The
//     error is small for large counts. [Stack.Counted] is exact.
//
// # Confidence intervals
//
// Windows are clusters of references. The hit ratio of a block is therefore a ratio of sums over
// windows. Its variance is the variance of a ratio estimator (Cochran, Sampling Techniques, 1977,
// §6.4) times the fraction of windows that are not in the sample. Blocks are strata, so their
// weighted variances add up. If a block has many windows, they are divided into 64 random groups,
// and the variance between groups replaces the variance between windows (Wolter, Introduction to
// Variance Estimation, 2007, §2.3). The errors of the synthesised trace and of the stack distance
// cache model are not included.
package blocksample
