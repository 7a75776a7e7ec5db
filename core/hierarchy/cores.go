package hierarchy

import (
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// ByCore is a prediction for a program whose threads run on several cores: in sum,
// and core by core.
type ByCore struct {
	Prediction           // sums of the cores
	Cores      []OneCore // by their first thread; nil: the profile knows of one only
	Coherence  []float64 // of each level's misses, those of lines that it lost to another core's store
}

// OneCore is what one core asks of each level. Of a shared level, its accesses are
// the core's part.
type OneCore struct {
	Threads []uint32
	Levels  []CoreLevel
}

// CoreLevel counts one core's accesses to a level.
type CoreLevel struct {
	Accesses, Hits, Misses float64
	// Coherence are those of Misses whose line the core lost to another one's store
	// while it was here (or above, in an exclusive level): expected, where the level
	// has sets.
	Coherence float64
}

// Share is the part of a shared level that a core has to itself.
type Share struct {
	Thread    uint32 // one of the core's
	SizeBytes uint64
}

// CoreAsker asks about the private and shared caches of a profile with stacks of
// threads (Kulkarni §4.1.2; MODELS §6.5): a core's coherent stack answers for a level
// of its own, where other cores' stores take lines away; the concurrent stack of the
// cores that share a level answers for that, core by core. The misses of every level
// are cut, core by core, to those of the level above.
type CoreAsker struct {
	*Asker
	stacks map[stackKey]stackCurve
	bySDCM map[stackCache]float64 // misses by SDCM, which take longest
}

// stackCache is a cache of sets that a stack was asked about.
type stackCache struct {
	stackKey
	geometry
}

// stackKey names a stack of a profile.
type stackKey struct {
	lineBytes uint32
	kind      stackKind
	of, core  int // domain, where it is one's, and core
}

type stackKind uint8

const (
	privateStack   stackKind = iota
	coherentStack            // lost accesses are cold
	lostStack                // of coherence misses, by the depth at which the line was lost
	foreignStack             // private distances of accesses that find another core's line
	memberStack              // of one core on the stack of a domain
	foreignAtStack           // distances on the stack of all cores of accesses that find another core's line
)

// stackCurve is what was counted on a stack.
type stackCurve struct {
	*profile.Curve
	sets *profile.SetTable // nil: none
}

// NewCoreAsker is a CoreAsker for p.
func NewCoreAsker(p *profile.Profile) *CoreAsker {
	return &CoreAsker{NewAsker(p), map[stackKey]stackCurve{}, map[stackCache]float64{}}
}

// Predict answers for every level of h, as [Asker.Predict] where the profile knows
// of one core only, or h puts all threads on one. shares say how the last level that cores share is parted: then
// each core's private stack answers for its part (Anger, Fig. 8). Cores that shares
// do not name part what is left equally.
func (a *CoreAsker) Predict(h Hierarchy, shares []Share) (ByCore, []Warning, error) {
	if len(a.p.Sharing) == 0 || h.Threads == OnOneCore {
		if len(shares) > 0 {
			return ByCore{}, nil, &trace.OptionError{Option: "share", Got: "parts of a shared level", Want: "several threads on cores of their own, and a profile with their stacks"}
		}
		p, warnings, err := a.Asker.Predict(h)
		return ByCore{Prediction: p}, warnings, err
	}
	if len(h.Levels) == 0 {
		return ByCore{}, nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	out := ByCore{Prediction: Prediction{References: a.p.Totals.AllReferences(), Instructions: a.instrs}}
	parts, err := a.parts(h, shares)
	if err != nil {
		return ByCore{}, nil, err
	}
	for i := range h.Levels {
		if err := a.addLevel(&out, h, i, parts); err != nil {
			return ByCore{}, nil, err
		}
	}
	warnings := a.coreDoubts(h, &out)
	out.time(h)
	out.move(h, &a.p.Totals)
	return out, warnings, nil
}

// ofCore is what a core would miss of all its accesses.
type ofCore struct {
	accesses, misses, sdcm, coherence float64
	method                            Method
}

// addLevel puts level i behind those that out has.
func (a *CoreAsker) addLevel(out *ByCore, h Hierarchy, i int, parts []Cache) error {
	c := h.Levels[i]
	if _, err := a.curve(c); err != nil { // the cache cannot be, or the profile has no such lines
		return err
	}
	s := a.sharing(c.LineBytes)
	if s == nil {
		return &trace.OptionError{Option: "cache", Got: c.String(), Want: "a line size for which the profile has stacks of threads"}
	}
	asked, together := h.togetherBy(i)
	cores, err := a.perCore(s, asked, i == lastShared(h), parts)
	if err != nil {
		return err
	}
	level, coherence := Level{Cache: c, Method: Exact, Together: together}, 0.
	for k, n := range cores {
		if i == 0 {
			out.Cores = append(out.Cores, OneCore{Threads: s.Cores[k].Threads})
		}
		coherence += out.Cores[k].add(n, &level)
	}
	level.name(i, &h, out.Levels)
	if estimated(a.p) {
		level.estimate()
	}
	out.Levels, out.Coherence = append(out.Levels, level), append(out.Coherence, coherence)
	out.MemoryAccesses = level.Misses
	return nil
}

// togetherBy is together, of levels that the same cores share.
func (h *Hierarchy) togetherBy(i int) (one Cache, ok bool) {
	for _, above := range h.Levels[:i] {
		if max(above.SharedBy, 1) != max(h.Levels[i].SharedBy, 1) {
			return h.Levels[i], false
		}
	}
	return h.together(i)
}

// add puts what a core would miss by itself behind its levels so far, and adds it to
// the sum of the cores.
func (c *OneCore) add(n ofCore, sum *Level) (coherence float64) {
	one := CoreLevel{Accesses: n.accesses, Misses: n.misses}
	if len(c.Levels) > 0 {
		one.Accesses = c.Levels[len(c.Levels)-1].Misses
		sum.cut = sum.cut || n.misses > one.Accesses
	}
	one.Misses = min(n.misses, one.Accesses)
	one.Hits = one.Accesses - one.Misses
	one.Coherence = min(n.coherence, one.Misses)
	c.Levels = append(c.Levels, one)
	sum.Accesses += one.Accesses
	sum.Hits += one.Hits
	sum.Misses += one.Misses
	sum.SDCMMisses += min(n.sdcm, one.Accesses)
	if n.method == SDCM {
		sum.Method = SDCM
	}
	return one.Coherence
}

// name says how a level that stands behind others was answered.
func (l *Level) name(i int, h *Hierarchy, above []Level) {
	l.Beside = l.Method == Exact && !l.Cache.Full()
	switch {
	case l.Method == SDCM:
	case i > 0 && !l.Together:
		l.Method = Independent
	case l.Cache.Replacement != LRU && l.Cache.Ways != 1 || l.Cache.Write.Around():
		l.Method = AsIfLRU
	}
	l.Approximate = i > 0 && (l.Cache.LineBytes != h.Levels[0].LineBytes || above[i-1].Approximate)
}

// estimate says that a level was answered from a sample.
func (l *Level) estimate() {
	switch l.Beside = false; l.Method {
	case Exact, AsIfLRU:
		l.Method = Sampled
	case SDCM:
		l.Method = SampledSDCM
	case Independent:
		l.Method = SampledIndependent
	}
}

// perCore answers for the caches of a level, core by core; parts are those of the
// cores, if this is the level that is parted.
func (a *CoreAsker) perCore(s *profile.Sharing, c Cache, parted bool, parts []Cache) (cores []ofCore, err error) {
	cores = make([]ofCore, len(s.Cores))
	if parted && len(parts) > 0 {
		for k := range cores {
			cores[k] = a.answer(stackKey{s.LineBytes, privateStack, 0, k}, s, parts[k])
		}
		return cores, nil
	}
	groups, ok := groupsOf(s, c.SharedBy)
	if !ok {
		return nil, newDomainError(c, s)
	}
	for _, g := range groups {
		if g.domain < 0 {
			cores[g.core] = a.coherent(s, c, g.core)
		} else {
			a.concurrent(s, c, g.domain, cores)
		}
	}
	return cores, nil
}

// coherent answers for a core's own cache.
func (a *CoreAsker) coherent(s *profile.Sharing, c Cache, core int) ofCore {
	n := a.answer(stackKey{s.LineBytes, coherentStack, 0, core}, s, c)
	lost := a.answer(stackKey{s.LineBytes, lostStack, 0, core}, s, c) // as if their lines had stayed
	n.coherence = min(n.misses, lost.accesses-lost.misses)
	return n
}

// concurrent answers for a cache that the cores of a domain share, and writes the
// answers to their places in cores. Where the cache's sets are exact in sum, each core
// gets its part of the misses in the proportion that SDCM expects.
func (a *CoreAsker) concurrent(s *profile.Sharing, c Cache, number int, cores []ofCore) {
	d := &s.Domains[number]
	members := make([]ofCore, len(d.Cores))
	var cold float64
	var accesses uint64
	for k, core := range d.Cores {
		key := stackKey{s.LineBytes, memberStack, number, int(core)}
		member := a.stack(key, s)
		members[k] = a.answer(key, s, c)
		accesses += member.Accesses
		cold += float64(member.Cold)
	}
	if hits, ok := tableHits(d.Counted(), c); ok {
		apportion(members, d.Members, float64(accesses-hits), cold)
	}
	for k, core := range d.Cores {
		cores[core] = members[k]
	}
}

// apportion has cores miss sum together, each more or less than SDCM expects of it
// in one proportion: of what it would miss but for first accesses, or of what it
// would hit.
func apportion(cores []ofCore, members []profile.Member, sum, cold float64) {
	var expected, accesses float64
	for _, n := range cores {
		expected += n.misses
		accesses += n.accesses
	}
	for k := range cores {
		n, first := &cores[k], float64(members[k].Cold)
		n.method = Exact
		switch {
		case sum < expected:
			n.misses = first + (n.misses-first)*(sum-cold)/(expected-cold)
		case sum > expected:
			n.misses = n.accesses - (n.accesses-n.misses)*(accesses-sum)/(accesses-expected)
		}
	}
}

// answer is what a stack says of a cache.
func (a *CoreAsker) answer(key stackKey, s *profile.Sharing, c Cache) ofCore {
	stack := a.stack(key, s)
	n := ofCore{accesses: float64(stack.Accesses), method: Exact}
	if c.Full() {
		n.misses = float64(stack.Misses(c.Lines()))
		n.sdcm = n.misses
		return n
	}
	n.sdcm = a.modelledMisses(key, stack.Curve, c)
	if hits, ok := tableHits(stack.sets, c); ok {
		n.misses = float64(stack.Accesses - hits)
	} else {
		n.misses, n.method = n.sdcm, SDCM
	}
	return n
}

// modelledMisses is what SDCM expects a cache of sets to miss.
func (a *CoreAsker) modelledMisses(key stackKey, curve *profile.Curve, c Cache) float64 {
	of := stackCache{key, geometry{c.LineBytes, c.Ways, c.Lines()}}
	misses, kept := a.bySDCM[of]
	if !kept {
		misses = max(0, float64(curve.Accesses)-expectedHits(curve, c.Lines(), uint64(c.Ways)))
		if len(a.bySDCM) >= keptAnswers {
			clear(a.bySDCM)
		}
		a.bySDCM[of] = misses
	}
	return misses
}

// tableHits is what a set table says of a cache, if it can.
func tableHits(t *profile.SetTable, c Cache) (hits uint64, ok bool) {
	if c.Full() || c.Hashed || t == nil {
		return 0, false
	}
	return t.Hits(c.Sets(), uint64(c.Ways))
}

func (a *CoreAsker) sharing(lineBytes uint32) *profile.Sharing {
	for i := range a.p.Sharing {
		if a.p.Sharing[i].LineBytes == lineBytes {
			return &a.p.Sharing[i]
		}
	}
	return nil
}

// stack gives what was counted on a stack, summed up once.
func (a *CoreAsker) stack(key stackKey, s *profile.Sharing) stackCurve {
	if found, ok := a.stacks[key]; ok {
		return found
	}
	made := countsOf(key, s)
	a.stacks[key] = made
	return made
}

func countsOf(key stackKey, s *profile.Sharing) stackCurve {
	of := func(n *profile.StackCounts, lost uint64) stackCurve {
		return stackCurve{profile.NewCurve(&n.Distances, n.Cold+lost), n.Counted()}
	}
	switch key.kind {
	case privateStack:
		return of(&s.Cores[key.core].Private, 0)
	case coherentStack:
		n := &s.Cores[key.core].Coherent
		return of(&n.StackCounts, n.Lost.Total())
	case lostStack:
		return stackCurve{profile.NewCurve(&s.Cores[key.core].Coherent.Lost, 0), nil}
	case foreignStack:
		return of(&s.Cores[key.core].Foreign, 0)
	case foreignAtStack:
		return of(&s.Domains[0].Foreign, 0)
	}
	d := &s.Domains[key.of]
	m := &d.Members[slices.Index(d.Cores, uint32(key.core))]
	return stackCurve{profile.NewCurve(&m.Distances, m.Cold), nil}
}

// coreGroup is the cores that share one cache of a level: those of a domain or, where
// domain is negative, one core alone.
type coreGroup struct{ domain, core int }

// groupsOf divides the cores into groups of sharedBy cores, each of which has a domain.
// Consecutive cores share a cache where the profile has their domain; otherwise the
// domains of the profile decide. Fewer than sharedBy cores may remain: they share the
// last cache. ok is false where the profile lacks a domain.
func groupsOf(s *profile.Sharing, sharedBy uint32) (groups []coreGroup, ok bool) {
	n := int(min(uint64(max(sharedBy, 1)), uint64(len(s.Cores))))
	grouped := make([]bool, len(s.Cores))
	add := func(domain int) {
		groups = append(groups, coreGroup{domain: domain})
		for _, core := range s.Domains[domain].Cores {
			grouped[core] = true
		}
	}
	var rest []uint32
	for core := range s.Cores {
		if grouped[core] {
			continue
		}
		if domain := domainFrom(s, core, n, grouped); domain >= 0 {
			add(domain)
		} else {
			rest = append(rest, uint32(core))
		}
	}
	switch domain := slices.IndexFunc(s.Domains, func(d profile.Domain) bool { return slices.Equal(d.Cores, rest) }); {
	case len(rest) == 1 || n == 1:
		for _, core := range rest {
			groups = append(groups, coreGroup{-1, int(core)})
		}
	case len(rest) >= n || len(rest) > 0 && domain < 0:
		return nil, false
	case len(rest) > 0:
		add(domain)
	}
	return groups, true
}

// domainFrom returns the number of a domain of n cores that are not grouped yet, first
// being the lowest of them; -1: there is none. Consecutive cores come before others.
func domainFrom(s *profile.Sharing, first, n int, grouped []bool) (number int) {
	number = -1
	for i := range s.Domains {
		cores := s.Domains[i].Cores
		if n == 1 || len(cores) != n || int(cores[0]) != first || slices.ContainsFunc(cores, func(c uint32) bool { return grouped[c] }) {
			continue
		}
		if int(cores[n-1]) == first+n-1 {
			return i
		}
		if number < 0 {
			number = i
		}
	}
	return number
}

// DomainError reports that some cores share a level and the profile has no stack of
// these cores together. It wraps a [*trace.OptionError].
type DomainError struct {
	Level  Cache
	Groups [][]uint32 // the threads that share each of its caches; an analysis needs them as domains
	err    *trace.OptionError
}

func (e *DomainError) Error() string { return e.err.Error() }
func (e *DomainError) Unwrap() error { return e.err }

func newDomainError(c Cache, s *profile.Sharing) *DomainError {
	e, text := &DomainError{Level: c}, ""
	for i := range s.Cores {
		if i%int(c.SharedBy) == 0 {
			e.Groups = append(e.Groups, nil)
		}
		group := &e.Groups[len(e.Groups)-1]
		*group = append(*group, s.Cores[i].Threads...)
	}
	for i, group := range e.Groups {
		sort.Slice(group, func(i, j int) bool { return group[i] < group[j] })
		for k, t := range group {
			switch {
			case k > 0:
				text += ","
			case i > 0:
				text += "/"
			}
			text += strconv.FormatUint(uint64(t), 10)
		}
	}
	e.err = &trace.OptionError{Option: "cache", Got: c.String(), Want: "a profile with the stack of the cores that share it; " +
		"analyse the trace again, with --domains " + text}
	return e
}

// lastShared is the number of the last level that cores share, or -1.
func lastShared(h Hierarchy) int {
	for i := len(h.Levels) - 1; i >= 0; i-- {
		if h.Levels[i].SharedBy > 1 {
			return i
		}
	}
	return -1
}

// parts are the caches that the last shared level is parted into, one for each core;
// nil: it is not.
func (a *CoreAsker) parts(h Hierarchy, shares []Share) ([]Cache, error) {
	if len(shares) == 0 {
		return nil, nil
	}
	bad := func(got, want string) error { return &trace.OptionError{Option: "share", Got: got, Want: want} }
	level := lastShared(h)
	if level < 0 {
		return nil, bad("a part of a level", "a level that cores share, as in --cache L2=8MiB,16,shared=all")
	}
	cores := a.p.Sharing[0].Cores
	parts, left, unnamed := make([]Cache, len(cores)), h.Levels[level].SizeBytes, uint64(len(cores))
	for _, share := range shares {
		text := strconv.FormatUint(uint64(share.Thread), 10) + "=" + FormatSize(share.SizeBytes)
		core := slices.IndexFunc(cores, func(c profile.Core) bool { return slices.Contains(c.Threads, share.Thread) })
		switch {
		case core < 0:
			return nil, bad(text, "a thread of the trace")
		case parts[core].SizeBytes > 0:
			return nil, bad(text, "one part for each core")
		case share.SizeBytes > left:
			return nil, bad(text, "parts of no more than the "+FormatSize(h.Levels[level].SizeBytes)+" of "+h.Levels[level].Name)
		}
		parts[core].SizeBytes = share.SizeBytes
		left, unnamed = left-share.SizeBytes, unnamed-1
	}
	for k := range parts {
		size := parts[k].SizeBytes
		if parts[k] = h.Levels[level]; size == 0 {
			size = equalPart(parts[k], left/unnamed)
		}
		parts[k].SizeBytes = size
		if err := parts[k].Check(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// equalPart is at most bytes, and whole sets of a cache.
func equalPart(c Cache, bytes uint64) uint64 {
	return bytes - bytes%(uint64(c.LineBytes)*uint64(max(c.Ways, 1)))
}

// Curves returns the misses of a core's accesses in private caches of every size: in one that
// no other core disturbs, in one from which other cores' stores take lines, where coherence
// misses are cold, and of the coherence misses alone, by the depth at which the line was lost.
// The profile has stacks of threads with such lines.
func (a *CoreAsker) Curves(lineBytes uint32, core int) (private, coherent, lost *profile.Curve) {
	of := func(kind stackKind) *profile.Curve {
		return a.stack(stackKey{lineBytes, kind, 0, core}, a.sharing(lineBytes)).Curve
	}
	return of(privateStack), of(coherentStack), of(lostStack)
}

// MemberCurve returns the misses of a core's accesses in caches of every size that the cores
// of a domain share. The profile has the domain, and the core is in it.
func (a *CoreAsker) MemberCurve(lineBytes uint32, domain, core int) *profile.Curve {
	return a.stack(stackKey{lineBytes, memberStack, domain, core}, a.sharing(lineBytes)).Curve
}

// Alone returns how many accesses of a core miss in a private cache that no other core
// disturbs. The profile has stacks of threads with such lines.
func (a *CoreAsker) Alone(c Cache, core int) float64 {
	return a.answer(stackKey{c.LineBytes, privateStack, 0, core}, a.sharing(c.LineBytes), c).misses
}

// Domain returns the number of the profile's domain whose cores share a level with this
// core; -1 where the core has the level for itself.
func (a *CoreAsker) Domain(c Cache, core int) int {
	s := a.sharing(c.LineBytes)
	groups, _ := groupsOf(s, c.SharedBy)
	for _, g := range groups {
		if g.domain >= 0 && slices.Contains(s.Domains[g.domain].Cores, uint32(core)) {
			return g.domain
		}
	}
	return -1
}

// EffectiveShare returns the least capacity, in lines, of a private cache in which a core
// misses no more often than in a shared level, both fully associative with LRU replacement
// (Anger, Figure 8). ok is false where no capacity is large enough, because other cores bring
// lines that the core would miss in a private cache of any size.
func (a *CoreAsker) EffectiveShare(c Cache, core int) (lines uint64, ok bool) {
	domain := a.Domain(c, core)
	if domain < 0 {
		return c.Lines(), true
	}
	private, _, _ := a.Curves(c.LineBytes, core)
	return private.CapacityFor(a.MemberCurve(c.LineBytes, domain, core).Misses(c.Lines()))
}

// Views are the misses of the private caches of all cores together by each of the models
// of MODELS §6. Each cache sees the whole stream of its core's accesses.
type Views struct {
	Accesses float64
	// Private ignores coherence (MODELS §6.1). Anger takes lines that another core touched
	// last from one cache of all cores' sizes together (MODELS §6.3). Coherent loses lines
	// that another core stores to (MODELS §6.4).
	Private, Anger, Coherent float64
	Exact                    bool // the views are; or else by SDCM, at least in part
}

// Views compares the views of a level that each core has for itself. ok is false
// where the profile has no stacks of threads with such lines.
func (a *CoreAsker) Views(c Cache) (v Views, ok bool) {
	s := a.sharing(c.LineBytes)
	if s == nil || c.Check() != nil {
		return v, false
	}
	v.Exact = !estimated(a.p)
	count := func(key stackKey, c Cache) (accesses, misses float64) {
		n := a.answer(key, s, c)
		v.Exact = v.Exact && n.method == Exact
		return n.accesses, n.misses
	}
	for k := range s.Cores {
		all, private := count(stackKey{c.LineBytes, privateStack, 0, k}, c)
		_, coherent := count(stackKey{c.LineBytes, coherentStack, 0, k}, c)
		foreign, foreignMisses := count(stackKey{c.LineBytes, foreignStack, 0, k}, c)
		v.Accesses += all
		v.Private += private
		v.Coherent += coherent
		v.Anger += private + (foreign - foreignMisses)
	}
	together := c
	together.SizeBytes *= uint64(len(s.Cores))
	together.Ways *= uint32(len(s.Cores))
	found, missed := count(stackKey{lineBytes: c.LineBytes, kind: foreignAtStack}, together)
	v.Anger -= found - missed
	return v, true
}

// coreDoubts are the warnings of a prediction by core.
func (a *CoreAsker) coreDoubts(h Hierarchy, out *ByCore) (warnings []Warning) {
	warnings = ProfileDoubts(a.p)
	say := func(parts ...string) {
		text := ""
		for _, part := range parts {
			text += part
		}
		warnings = append(warnings, Warning(text))
	}
	a.modelled(out.Levels, say)
	for i := range out.Levels {
		l := &out.Levels[i]
		if text := otherPolicy(l.Cache, i > 0 && l.Cache.Inclusion == Exclusive && !l.Together); text != "" {
			say(l.Cache.Name, text)
		}
		if n := int(min(uint64(l.Cache.SharedBy), MostCores)); n > 1 && n < len(out.Cores) {
			say(l.Cache.Name, " loses lines to stores of cores that do not share it; it is answered as if it kept them")
		}
	}
	if text := OrderDoubt(a.p); text != "" {
		warnings = append(warnings, text)
	}
	out.misfits(say)
	if out.anyBehind() {
		say("every level is asked about all accesses; a real lower level sees only the misses of the one above, " +
			"so its order of use, and with it its misses, differ somewhat")
	}
	return warnings
}

// MostCores is the most cores that there is an answer for.
const MostCores = profile.MaxCores

// OrderDoubt warns of a trace that has the references of several threads in order only
// from one slice of time to the next; "" where it has not.
func OrderDoubt(p *profile.Profile) Warning {
	if !p.Input.Header.Sliced || len(p.Totals.Threads) < 2 {
		return ""
	}
	return "the trace has the references of threads in order only from one slice of time to the next: " +
		"within one, stores may take lines from other cores, and cores may bring lines for others, sooner or later than they did (STACKGLASS_ORDER=exact records the order)"
}
