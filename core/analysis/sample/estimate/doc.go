// Package estimate estimates stack-distance histograms, and the results that depend on them, from a
// sample of a trace's accesses, with confidence intervals (MODELS §8). Package estimate replaces
// package locality, and the analyses that depend on package locality, and needs only a fraction of
// their time and memory.
//
// # Lines
//
// A sample in space contains every access to some lines: the lines whose hash is at most R·2^64.
// The sample contains a share R of the distinct lines between two accesses to a line, so the number
// of sampled lines between the accesses, divided by R, is an estimate of the stack distance
// (Waldspurger, Park, Garthwaite and Ahmad, SHARDS, FAST 2015). If the number of sampled lines is
// limited, R is halved whenever the number exceeds the limit, and the lines whose hash is then
// above R·2^64 are dropped. Accesses that were counted before R was halved keep their weights. This
// method alone is inaccurate: it cannot distinguish distances below 1/R from zero, and its result
// depends on whether the sample contains the few lines that receive most accesses. Two refinements
// make the method more accurate:
//
//  1. The 16 lines on top of the stack, called the front, are tracked for all accesses (front.go).
//     Most accesses of real programs hit these lines. The distances of accesses that hit in the
//     front are exact, and their lines need not be hashed. Only the accesses beyond the front are
//     sampled. The number of accesses beyond the front is known. If the scaled number of sampled
//     accesses differs from this number, the difference is added at the shortest distances
//     (SHARDS-adj).
//  2. A second estimate of the distance is available at any sampling rate: it is predicted from the
//     number of lines that have left the front since the accessed line left it (space.go; Eklov and
//     Hagersten, StatStack, ISPASS 2010). The result is the mean of the prediction and the scaled
//     number of sampled lines, each weighted by the inverse of its variance. The prediction
//     dominates for short distances, and the number of sampled lines dominates for long distances.
//
// Sampled lines are too sparse to count stack distances within sets: at a rate of 1 %, a set of 8
// ways contains 0.08 sampled lines on average. For sampled profiles, the misses of set-associative
// caches are therefore estimated with the stack distance cache model (MODELS §5).
//
// # Accesses
//
// A sample in time chooses single accesses, and follows the line of each chosen access until the
// line is accessed again (Kulkarni, section 2.1). The gaps between chosen accesses are
// geometrically distributed, so each access is chosen with the same probability. A gap begins at
// the previous chosen access, so samples may overlap. (If each gap began at the end of the previous
// sample, short distances would be over-represented.) While no sample is open, accesses are
// skipped. If a sample stays open for longer than a certain fraction of the mean gap, it counts
// only one line in 64 from then on, chosen by hash. A sample whose line is not accessed again
// represents a cold access, because each line has exactly one first access and one last access.
//
// # Other analyses
//
// Samples also estimate the results of other analyses (followers.go):
//
//   - Sites and data objects (bysite.go): references, strides, and accesses to the 16 lines on top
//     of the stack are counted exactly. A stack distance lies between two accesses to a line. A
//     sampled distance is attributed to the site and the object of the second access. The number of
//     accesses of each site and object is known. If the scaled sample contains fewer accesses than
//     this number, the missing accesses are counted at the shortest distance (SHARDS-adj).
//     bysitecores.go uses the same method for the counts of sites on coherent stacks.
//   - Threads (threads.go): each core has its own stack, and each group of cores that share a cache
//     has another stack. In a sample of lines, each stack has its own front and its own reuse
//     times. In a sample of single accesses, each stack has its own samples. The front of the
//     coherent stack (MODELS §6.4) contains all lines. Below the front, the coherent stack contains
//     only the sampled lines and the holes. The distances on the coherent stack are estimated from
//     the distances on the private stack. These distances are scaled by a factor, because holes
//     shorten them; the factor is measured for the sampled lines. A sample of a single access ends
//     at the next access to the line by the same core. This access is a coherence miss if another
//     core has stored to the line since the sampled access. The depth at which the line was
//     invalidated is the number of lines accessed from the beginning of the sample to the store.
//     Stack distances within sets are not counted, and the misses of set-associative caches are
//     estimated with SDCM. The classes of MODELS §6.6 are not estimated, because they depend on
//     rare accesses by other cores, which a sample usually does not contain.
//   - Communication (talk.go): the sample contains every access to a sampled line, so the estimates
//     for words and lines have no bias. If the rate is halved, lines are dropped together with
//     their counts. Pages are omitted, because the last writer of a page depends on all lines of
//     the page. If a part of a data object contains no sampled line, the owner of that part is
//     unknown. Samples of single accesses cannot determine the last writer of a word. Kulkarni
//     (section 3.1) therefore proposes to sample lines or intervals of the run.
//
// A sample of single accesses can detect the last access to a line, but not the first. The number
// of first accesses, and the number of accesses to invalidated lines, are estimated from up to
// 8,192 lines, which are chosen by hash and observed at every access.
//
// A performance problem may involve only a few lines, for example a line with a counter to which all
// threads write. At a sampling rate of 1 %, 99 % of all samples do not contain such a line. In
// the other samples, the line counts as a hundred lines.
//
// # Intervals of the run
//
// [sample.OnOff] skips most of the run, and passes all records of short intervals to every
// analysis.
//
// # Confidence intervals
//
// The sampled lines are divided into 16 independent groups by a hash. Single accesses are assigned
// to 16 groups round-robin. The standard error of the number of misses of each core, site or
// communication flow is computed from the variance between the groups. The confidence interval
// follows from Student's t-distribution with 15 degrees of freedom, or 7 for communication, which
// has 8 groups. The estimated distances are uncertain, too; their standard deviation depends on how
// the sampler estimates them. The interval for a capacity is therefore widened until it covers the
// misses at neighbouring capacities. If the sample contains no access that contributes to a result,
// the upper bound of the result is the weight of three sampled accesses (rule of three). If a row
// of a table is the sum of several sites or flows, the half-widths of their confidence intervals
// are added, because all errors may have the same sign. For the histogram of single accesses, each
// count is treated as a binomial share (Wilson's interval).
package estimate
