// Package blocksample estimates hit rates of the cores' caches from a part of a mimicked trace,
// block by block, as PPT-SASMM does (MODELS §14.3; Barai et al., MEMSYS 2020, §3.4 to §3.6):
//
//  1. A window is an execution of a basic block. Some of each block are looked at, and give
//     its conditional reuse profile P(D|BB_i): how the distances of its references are
//     distributed (Algorithm 3; [Collector]). Of [sasmm.Private] each core has a stack of
//     its own, of [sasmm.Shared] there is one for all. The same goes for any other trace
//     with threads.
//  2. P(BB_i) is how much a block counts, from how often it ran in the sequential run: eq. 1
//     for a shared cache ([ForShared]), eq. 2 and 3 for private ones ([ForPrivate]).
//  3. P(D) = Σ P(BB_i) P(D|BB_i) is the profile of all (eq. 4; [Stack.Profile]).
//  4. P(h) = Σ P(D) P(h|D), with the stack distance cache model for P(h|D), is the hit rate
//     (eq. 5 to 7; [Stack.Rate]). Of all caches of a level, [Of] gives the mean and the rate
//     by accesses, with intervals and counts of what was looked at.
//
// In a prediction (package predict) blocks weigh what they were counted to, unless it is
// asked for the equations: that is what these stand for, and leaves sampling and the stack
// distance cache model as the only errors.
//
// For a larger input, package larger predicts the counts, and keeps the profiles of a small run
// or follows their distances from run to run.
//
// # Errata
//
//   - Eq. 1 counts executions. P(D) is over references, so a block with r_i references an
//     execution must count N_i r_i ([Corrected]). Printed is [Printed].
//   - Eq. 2 and 3 have different denominators, Σ_ser + Σ_par and Σ_ser + Σ_par/m, so that
//     probabilities do not sum to one: with half of the executions parallel and four cores,
//     to 1/2 + (1/8)/(5/8) = 0.70. Core 0 has the serial blocks and a share of the parallel
//     ones: both take the second denominator. Other cores have parallel blocks alone,
//     which sum to one over Σ_par/m. The authors' program
//     (reuse_profile_bb_i_shared_mem_…V8-all.py) has it so, too.
//   - As printed, the equations are for private caches without a word of which. Here
//     [Printed] gives serial blocks to core 0 only: others have no window of them, and
//     Algorithm 3 returns nothing. Since what remains sums to less than one, rates are
//     divided by the sum; [Rate.Weight] is the sum, and HitRate × Weight eq. 7 to the letter.
//   - "Typically we randomly select 1 % samples of basic block windows": of a block that ran
//     fifty times that is none, and the authors' program takes ten of each, however many
//     there are. Here it is one in a hundred and 30 at least, chosen as those of package
//     analysis/branches are, or as [Looked] says.
//   - get_rd goes through the trace. Distances here are exact, from a stack that sees all
//     references; sampling decides which of them count.
//   - A call interrupts a window: what follows is a block by itself ([trace.Block]).
//   - Blocks that ran once are copied to every core, and yet count N_i/m in eq. 3. For
//     large counts that is nothing; [Stack.Counted] has weights that know.
//
// # Error bars
//
// Windows are clusters of references, so the rate of a block is a ratio of sums over
// windows, with the variance of a ratio estimator (Cochran, Sampling Techniques, 1977,
// §6.4), times the share of windows that were not looked at. Blocks are strata: their
// variances add up, weighted. Where a block has many windows they are put into 64 groups,
// which vary as windows do (random groups: Wolter, Introduction to Variance Estimation,
// 2007, §2.3). That is the error of sampling. Those of mimicking the trace and of the stack
// distance cache model are not in it.
package blocksample
