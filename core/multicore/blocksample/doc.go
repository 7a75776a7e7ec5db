// Package blocksample estimates the hit ratios of the cores' caches from samples of the basic
// blocks of a synthesised trace, as PPT-SASMM does (MODELS §14.3; Barai et al., MEMSYS 2020, §3.4
// to §3.6):
//
//  1. A window is an execution of a basic block. A sample of the windows of each block yields its
//     conditional reuse profile P(D|BB_i) (Algorithm 3; [Collector]). With [sasmm.Private], each
//     core has its own stack; with [sasmm.Shared], all cores share one stack. [Collector] also
//     accepts recorded traces with threads.
//  2. P(BB_i) is the weight of a block, derived from its executions in the sequential run: eq. 1
//     for a shared cache ([ForShared]), eq. 2 and 3 for private caches ([ForPrivate]).
//  3. P(D) = Σ P(BB_i) P(D|BB_i) is the profile of the whole trace (eq. 4; [Stack.Profile]).
//  4. P(h) = Σ P(D) P(h|D) is the hit ratio (eq. 5 to 7; [Stack.Rate]), where the stack distance
//     cache model yields P(h|D). [Of] computes two hit ratios of a level: the mean over all caches,
//     and the access-weighted ratio. The results include confidence intervals and sample sizes.
//
// In a prediction (package predict), blocks are weighted by their counted accesses unless the user
// selects the paper's equations. The weights from the equations approximate the counted accesses.
// With counted accesses, the only errors are the sampling error and the error of the stack distance
// cache model.
//
// For a larger input, package larger predicts the counts. Package larger either keeps the profiles
// of a small run, or extrapolates the distances in the profiles from several runs.
//
// # Errata
//
//   - Eq. 1 weights a block by its executions, N_i. P(D) is a distribution over references, so
//     [Corrected] weights a block with r_i references per execution by N_i r_i. [Printed] follows
//     the paper.
//   - Eq. 2 and 3 have different denominators, Σ_ser + Σ_par and Σ_ser + Σ_par/m, so the
//     probabilities do not sum to one. For four cores and a program in which half of the executions
//     are parallel, the probabilities sum to 1/2 + (1/8)/(5/8) = 0.70. Core 0 executes the serial
//     blocks and a share of the parallel blocks, so both equations must have the second
//     denominator. The other cores execute only parallel blocks, so the weights of these cores sum
//     to one with the denominator Σ_par/m. The authors' program also uses these two denominators
//     (reuse_profile_bb_i_shared_mem_…V8-all.py).
//   - The equations do not specify which core they describe. [Printed] assigns serial blocks only
//     to core 0, because the other cores have no windows of these blocks, and Algorithm 3 returns
//     no profile for a block without windows. Without the serial blocks, the weights of a core sum
//     to less than one, so ratios are divided by the sum. [Rate.Weight] is the sum of the weights,
//     and HitRate × Weight is eq. 7 exactly as printed.
//   - The paper says, "Typically we randomly select 1 % samples of basic block windows". A sample
//     of 1 % contains no window of a block that ran fifty times. The authors' program selects ten
//     windows of each block. By default, this package selects 1 % of the windows of each block, but
//     at least 30 windows (see [Looked]).
//   - The paper's function get_rd searches the trace backwards for each distance. Package
//     blocksample computes exact distances, because every reference updates the stack. Sampling
//     only selects the references whose distances are counted.
//   - A call ends a window. The code after the call is a separate block ([trace.Block]).
//   - A parallel block that ran once in the trace is executed by every core. Eq. 3, however,
//     assigns N_i/m executions to each core. The error of eq. 3 is small for large counts. The
//     weights that [Stack.Counted] returns are exact.
//
// # Confidence intervals
//
// Windows are clusters of references, so the hit ratio of a block is a ratio of sums over windows.
// The variance of the hit ratio is the variance of a ratio estimator (Cochran, Sampling Techniques,
// 1977, §6.4) times the fraction of windows that are not in the sample. Blocks are strata, so their
// weighted variances add up. If a block has many windows, the windows are divided into 64 random
// groups, and the variance between groups replaces the variance between windows (Wolter,
// Introduction to Variance Estimation, 2007, §2.3). The confidence intervals do not include the
// errors of the synthesised trace and of the stack distance cache model.
package blocksample
