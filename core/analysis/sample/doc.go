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
