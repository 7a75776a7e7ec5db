// Package sample estimates a trace's stack-distance histograms from a part of its
// accesses, and tells how far the estimates may be off (MODELS §8). It stands in for
// package locality, at a fraction of its time and memory.
//
// # Lines
//
// A sample in space follows every access to some of the lines: those whose hash is
// below a threshold R·2^64. The distinct sampled lines between two accesses to a line
// are a share R of all, so that distances are those counted divided by R (Waldspurger,
// Park, Garthwaite and Ahmad, SHARDS, FAST 2015). With at most so many lines, R is
// halved and lines given up whenever there are more; what was counted until then
// stands for the accesses that it stood for. That alone is coarse: no distance below
// 1/R is told from zero, and whether the few lines that most accesses go to are in
// the sample decides everything. Two things are done about it:
//
//  1. The 16 lines on top of the stack are kept for all accesses (front.go). Most
//     accesses of real programs end there, so those are exact, and take no hash; the
//     sample is of the others alone. Their number is known, so what it is short of,
//     or too many, is put to the shortest distances (SHARDS-adj).
//  2. The time that a line was away from the front, in lines that left it, gives the
//     distance to expect (reuse.go; Eklov and Hagersten, StatStack, ISPASS 2010),
//     whatever the rate. It is combined with the count, each by the inverse of its
//     variance: the time tells short distances, the count long ones.
//
// Sampled lines fall into 2^a sets too sparsely to count depths in them: at a rate of
// a hundredth a set of 8 ways has a twelfth of a sampled line. Sets of a sampled
// profile are answered by the stack distance cache model instead (MODELS §5).
//
// # What follows the lines
//
// At a fixed rate a line is in the sample from its first access to its last, so that
// other analyses can be told of these lines and no others (followers.go). They run as
// ever on the shorter trace, and what they count is divided by the rate, distances
// included (scale.go):
//
//   - Sites take every reference, because that costs no stack: what they and data
//     objects refer to, and their strides, are exact. Distances are those of sampled
//     lines. As the number of all accesses is known, of each site and each object,
//     first accesses and long distances are taken from the sample, and the rest is at
//     distance 0 (SHARDS-adj, site by site).
//   - Stacks of threads, private, coherent and shared, are of sampled lines; each
//     core's accesses are counted, all of them, and dealt with in the same way. There
//     are no depths in sets, for which SDCM stands in, and no changes of distances:
//     whether something came in between two accesses is not seen if it is rare.
//   - Communication knows of sampled lines all that it knows of any, so words and lines
//     are estimated without bias. Pages are left out: who wrote to one last is told by
//     all its lines only. Parts of data without a sampled line have no owner.
//
// What rests on few lines, such as a counter that all threads write, is in the sample
// or it is not: one falsely shared line of many references is missed at a rate of a
// hundredth, 99 times of a hundred, and counts for a hundred such lines otherwise.
// The intervals below are of the histograms alone.
//
// # Accesses
//
// A sample in time follows single accesses until their line is used again (Kulkarni,
// section 2.1). Each access is one by the same chance: the gaps between them are
// geometric and run over all accesses, so that samples overlap; starting a gap when
// the sample before ends would favour short distances. While no sample is open nothing
// is looked at. One that stays open for long would have everything looked at until
// the end of the run: after a part of the mean gap only one line in 64 is counted for
// it, by hash, as above. A sample whose line is not used again stands for a cold
// access: as many lines have a last access as a first one.
//
// # Stretches
//
// [OnOff] leaves out parts of the run, so that any analysis sees the rest in full.
//
// # Intervals
//
// The sampled lines are 16 independent parts, by their hash. By how much the parts
// differ tells the standard deviation of the number of misses (Student's t with 15
// degrees of freedom); that of distances is known from how they were combined, and
// widens the interval to the misses of the capacities that may be meant. Single
// accesses are independent, so their share is a binomial one (Wilson's interval).
package sample
