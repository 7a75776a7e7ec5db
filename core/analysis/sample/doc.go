// Package sample estimates the counts of other analyses from a part of a trace's accesses, with
// confidence intervals (MODELS §8). It replaces package locality and its followers at a fraction of
// their time and memory.
//
// # Lines
//
// A sample in space follows every access to some of the lines: those whose hash is at most R·2^64.
// The distinct sampled lines between two accesses to a line are a share R of all, so distances are
// the counted ones divided by R (Waldspurger, Park, Garthwaite and Ahmad, SHARDS, FAST 2015). With
// a limit of lines, R is halved and lines are dropped whenever there are more; earlier counts keep
// their weight. That alone is coarse: it cannot tell distances below 1/R from zero, and depends on
// whether the sample contains the few lines that receive most accesses. Two refinements:
//
//  1. The 16 lines on top of the stack are kept for all accesses (front.go). Most accesses of real
//     programs hit there, exactly and without a hash; the sample is of the other accesses. Their
//     number is known, so the difference goes to the shortest distances (SHARDS-adj).
//  2. The time that a line was away from the front, in lines that left it, predicts its
//     distance at any rate (space.go; Eklov and Hagersten, StatStack, ISPASS 2010). Count and
//     time are combined, each weighted by the inverse of its variance: the time determines
//     short distances, the count long ones.
//
// Sampled lines are too sparse in 2^a sets to count depths: at a rate of 1 %, a set of 8 ways
// has a twelfth of a sampled line. Sampled profiles answer questions about sets by the stack
// distance cache model instead (MODELS §5).
//
// # Accesses
//
// A sample in time follows single accesses until their line is used again (Kulkarni, section 2.1).
// Each access is sampled with the same probability: the gaps are geometric and run over all
// accesses, so samples overlap; starting a gap when the sample before ends would favour short
// distances. While no sample is open, accesses are skipped. A sample that stays open for a part of
// the mean gap counts only one line in 64 from then on, by hash. A sample whose line is not used
// again represents a cold access: there are as many last accesses as first ones.
//
// # Other analyses
//
// Samples of the same kind estimate other analyses (followers.go):
//
//   - Sites and data objects (bysite.go): all references and strides are counted, and the
//     accesses that the front holds, exactly. A sampled distance counts for the access that
//     ends it. The number of all accesses of each site and object is known, so the rest is at
//     the shortest distance (SHARDS-adj). bysitecores.go does the same for coherent stacks.
//   - Threads (threads.go): each core, and each domain that shares a cache, has a stack of its own,
//     with its front and times, or its samples of accesses. The coherent stack (MODELS §6.4) is
//     exact at the top, and below has the sampled lines and holes: distances are those of the
//     private stack, reduced as holes reduce them among the sampled lines. A sampled access ends at
//     the next one of its core, which is a coherence miss if another core stored to the line; the
//     depth at which it was lost is the number of lines since. SDCM replaces depths in sets.
//     Changes of distances are not estimated, because rare intermediate accesses are not seen.
//   - Communication (talk.go): all is known of sampled lines, so words and lines are estimated
//     without bias. If the rate falls, lines are dropped with their counts. Pages are left
//     out, because their last writer depends on all their lines. Parts of data without a
//     sampled line have no owner. Single accesses cannot show the last writer of a word;
//     Kulkarni (section 3.1) proposes lines, or parts of the run, for that reason.
//
// A sample of single accesses knows the last access to a line, but not the first one. First
// accesses, and lines lost to stores, are estimated from up to 8,192 lines, chosen by hash,
// of which every access is seen.
//
// Effects of few lines, such as a counter that all threads write, are in the sample or not: at a
// rate of 1 %, one falsely shared line is missed with a probability of 99 %, and otherwise
// represents a hundred such lines.
//
// # Parts of the run
//
// [OnOff] skips parts of the run; any analysis sees the rest in full.
//
// # Intervals
//
// The sampled lines are 16 independent groups, by hash; single accesses are assigned to 16 groups
// in turn. The spread of the groups gives the standard deviation of the misses of each core, site
// or flow (Student's t with 15 degrees of freedom; communication has 8 groups). The deviation of
// distances follows from the way they were combined, and widens the interval to the misses of
// neighbouring capacities. The upper bound for something that the sample lacks is three draws (rule
// of three). If a row of a table sums several sites or flows, half-widths are added, because all
// errors may have the same sign. For the histogram of single accesses, each count is a binomial
// share (Wilson's interval).
package sample
