// Package estimate estimates stack-distance histograms, and the results that depend on them, from a
// sample of a trace's accesses, with confidence intervals (MODELS §8). It is used instead of
// package locality and the analyses that depend on it, and needs only a fraction of their time and
// memory.
//
// # Lines
//
// A sample in space follows every access to some of the lines, namely the lines whose hash is at
// most R·2^64. A share R of the distinct lines between two accesses to a line is sampled, so a
// distance is estimated as the counted distance divided by R (Waldspurger, Park, Garthwaite and
// Ahmad, SHARDS, FAST 2015). If the number of lines is limited, R is halved and lines are dropped
// whenever there are too many; the weights of earlier counts do not change. This method alone is
// inaccurate: it cannot distinguish distances below 1/R from zero, and its result depends on
// whether the sample contains the few lines that receive most accesses. Two refinements make it
// more accurate:
//
//  1. The 16 lines on top of the stack are tracked for all accesses (front.go). Most accesses of
//     real programs hit these lines. Their distances are exact, and need no hash. Only the other
//     accesses are sampled. Their number is known. If the sum of the scaled sample differs from
//     this number, the difference is added at the shortest distances (SHARDS-adj).
//  2. The distance of an access is also predicted from the number of lines that have left the front
//     since the accessed line left it, at any sampling rate (space.go; Eklov and Hagersten,
//     StatStack, ISPASS 2010). The prediction and the scaled count of sampled lines are combined,
//     each weighted by the inverse of its variance. The prediction dominates for short distances,
//     and the count for long distances.
//
// Sampled lines are too sparse to count depths in 2^a sets: at a rate of 1 %, a set of 8 ways
// contains a twelfth of a sampled line on average. For sampled profiles, the misses of
// set-associative caches are therefore estimated with the stack distance cache model (MODELS §5).
//
// # Accesses
//
// A sample in time chooses single accesses, and follows each until its line is accessed again
// (Kulkarni, section 2.1). The gaps between chosen accesses are geometrically distributed, so each
// access is chosen with the same probability. A gap begins at the previously chosen access, so
// samples may overlap. (If each gap began when the previous sample ended, short distances would be
// over-represented.) While no sample is open, accesses are skipped. After a sample has been open
// for a part of the mean gap, it counts only one line in 64, chosen by hash. A sample whose line is
// not accessed again represents a cold access, because there are as many last accesses to lines as
// first accesses.
//
// # Other analyses
//
// Samples of the same kind also estimate the results of other analyses (followers.go):
//
//   - Sites and data objects (bysite.go): references, strides, and accesses that hit in the front
//     are counted exactly. A sampled distance is attributed to the access that ends it. The number
//     of accesses of each site and object is known, so the remaining accesses are counted at the
//     shortest distance (SHARDS-adj). bysitecores.go does the same for coherent stacks.
//   - Threads (threads.go): each core, and each domain that shares a cache, has its own stack, with
//     its own front and times, or its own samples of accesses. The coherent stack (MODELS §6.4) is
//     exact at the top, and contains the sampled lines and holes below. Its distances are the
//     distances on the private stack times a factor: the reduction of the distances by holes among
//     the sampled lines. A sample of a single access ends when the same core next accesses the
//     line. That access is a coherence miss if another core has stored to the line since. The depth
//     at which the line was invalidated is the number of lines accessed since the sample began.
//     Depths in sets are not counted, and the misses of set-associative caches are estimated with
//     SDCM. The classes of MODELS §6.6 are not estimated, because the sample misses rare accesses
//     in between.
//   - Communication (talk.go): every access to a sampled line is seen, so the estimates for words
//     and lines have no bias. If the rate is halved, lines are dropped with their counts. Pages are
//     omitted, because their last writer depends on all their lines. Parts of data objects without
//     a sampled line have no owner. Samples of single accesses cannot show the last writer of a
//     word. Kulkarni (section 3.1) therefore proposes to sample lines, or parts of the run.
//
// A sample of single accesses shows the last access to a line, but not the first access. The number
// of first accesses, and of accesses to lines that stores invalidated, is estimated from up to
// 8,192 lines, which are chosen by hash. For these lines, every access is seen.
//
// A problem may concern only a few lines, such as the line of a counter that all threads write. At
// a rate of 1 %, 99 % of all samples do not contain such a line. If a sample contains the line, the
// line represents a hundred such lines.
//
// # Parts of the run
//
// [sample.OnOff] skips parts of the run; every analysis receives all rows of the other parts.
//
// # Intervals
//
// The sampled lines are divided into 16 independent groups, by hash. Single accesses are assigned
// to 16 groups in turn. The standard error of the misses of each core, site or flow is computed
// from the spread between the groups, and its interval with Student's t (15 degrees of freedom;
// communication has 8 groups, so 7). Distances are uncertain, too. Their standard deviation depends
// on the method by which they were combined. The interval is therefore widened to include
// the misses of neighbouring capacities. If the sample contains nothing for a result, its upper bound is three
// sampled accesses (rule of three). If a row of a table is the sum of several sites or flows, their
// half-widths are added, because all errors may have the same sign. For the histogram of single
// accesses, each count is treated as a binomial share (Wilson's interval).
package estimate
