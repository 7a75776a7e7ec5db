package sharing_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// grouped draws a random assignment of threads to cores, and random domains, each of which contains
// either all threads of a core or none.
func grouped(t *rapid.T, threads []uint32) (cores, domains [][]uint32) {
	for _, n := range threads {
		switch {
		case rapid.Bool().Draw(t, "alone"):
		case len(cores) > 0 && rapid.Bool().Draw(t, "together"):
			cores[len(cores)-1] = append(cores[len(cores)-1], n)
		default:
			cores = append(cores, []uint32{n})
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "domains") {
		var domain []uint32
		for _, n := range threads {
			whole := []uint32{n}
			if at := slices.IndexFunc(cores, func(c []uint32) bool { return slices.Contains(c, n) }); at >= 0 {
				whole = cores[at]
			}
			if whole[0] == n && rapid.Bool().Draw(t, "inside") {
				domain = append(domain, whole...)
			}
		}
		slices.Sort(domain)
		if len(domain) > 0 {
			domains = append(domains, domain)
		}
	}
	return cores, domains
}

// coresOf returns the core of each thread.
func coresOf(s *profile.Sharing) map[uint32]int {
	coreOf := map[uint32]int{}
	for i := range s.Cores {
		for _, n := range s.Cores[i].Threads {
			coreOf[n] = i
		}
	}
	return coreOf
}

// In this test, some cores run several threads, and some domains contain only some cores.
func TestGroupsEqualLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := multithreaded(80).Draw(t, "trace")
		threads, _ := ascending(b)
		spec := analysis.Spec{Analyses: analysis.Sharing}
		spec.Cores, spec.Domains = grouped(t, threads)
		p := analyse(t, spec, tracetest.NewReader(b, rapid.IntRange(1, 50).Draw(t, "rows")))
		if p.Sharing == nil {
			if len(threads) > 1 && (len(spec.Cores) == 0 || len(spec.Cores[0]) < len(threads)) {
				t.Fatal("the profile has no counts by core")
			}
			return
		}
		s := &p.Sharing[0]
		coreOf := coresOf(s)
		for _, group := range spec.Cores {
			for _, n := range group {
				if !slices.Equal(s.Cores[coreOf[n]].Threads, group) {
					t.Fatalf("the core of thread %d has threads %v, want %v", n, s.Cores[coreOf[n]].Threads, group)
				}
			}
		}
		all := accessesOf(b, 64, coreOf)
		for i := range s.Cores {
			private, _ := naiveCore(all, i)
			sameCounts(t, "private", &s.Cores[i].Private, &private)
		}
		sameMisses(t, all, s.Cores, []int{1}, []int{1, 2})
		sameDomains(t, s, spec.Domains, all, coreOf)
	})
}

// sameDomains compares the domains of a profile with the requested domains, except for the first
// domain, which contains all cores.
func sameDomains(t rapid.TB, s *profile.Sharing, domains [][]uint32, all []access, coreOf map[uint32]int) {
	t.Helper()
	if len(s.Domains) != 1+len(domains) {
		t.Fatalf("the profile has %d domains, want a domain of all cores, and the requested domains %v", len(s.Domains), domains)
	}
	for i, domain := range domains {
		var members []int
		for _, n := range domain {
			if at, found := slices.BinarySearch(members, coreOf[n]); !found {
				members = slices.Insert(members, at, coreOf[n])
			}
		}
		got := &s.Domains[i+1]
		if !slices.EqualFunc(got.Cores, members, func(x uint32, y int) bool { return int(x) == y }) {
			t.Fatalf("the domain of threads %v has cores %v, want %v", domain, got.Cores, members)
		}
		want := naiveDomain(all, members)
		sameDomain(t, "domain", got, &want)
	}
}

// If there are more threads than cores, several threads share a core, and all accesses are counted.
func TestManyThreads(t *testing.T) {
	b := &trace.Batch{Thread: []uint32{}}
	for i := range uint32(3000) {
		b.Append(trace.Kind(i%2), uint64(i*i%97)*64, 8, 4_000_000_000+i*7%200, 0)
	}
	together := []uint32{4_000_000_100, 4_000_000_199}
	for _, cores := range [][][]uint32{nil, {together}} {
		p := analyse(t, analysis.Spec{Analyses: analysis.Sharing, Cores: cores}, tracetest.NewReader(b, 100))
		s := &p.Sharing[0]
		if len(s.Cores) != profile.MaxCores || len(p.Totals.Threads) != 200 {
			t.Fatalf("the profile has %d cores and %d threads, want %d cores and 200 threads", len(s.Cores), len(p.Totals.Threads), profile.MaxCores)
		}
		coreOf := coresOf(s)
		for i := range s.Cores {
			private, _ := naiveCore(accessesOf(b, 64, coreOf), i)
			sameCounts(t, "private", &s.Cores[i].Private, &private)
		}
		if cores != nil && coreOf[together[0]] != coreOf[together[1]] {
			t.Errorf("threads %v are not on the same core", together)
		}
	}
}

func TestBadGroupsAreRejected(t *testing.T) {
	var many [][]uint32
	for i := range uint32(profile.MaxCores + 1) {
		many = append(many, []uint32{i})
	}
	for name, spec := range map[string]analysis.Spec{
		"two cores":        {Cores: [][]uint32{{1, 2}, {2, 3}}},
		"order":            {Cores: [][]uint32{{2, 1}}},
		"twice":            {Domains: [][]uint32{{2, 2}}},
		"nobody":           {Domains: [][]uint32{{}}},
		"half a core":      {Cores: [][]uint32{{1, 2}}, Domains: [][]uint32{{2, 3}}},
		"too many cores":   {Cores: many},
		"too many domains": {Domains: many[:profile.MaxDomains]},
	} {
		if err := spec.WithDefaults().Check(); err == nil {
			t.Errorf("%s: Check() = nil, want an error", name)
		}
	}
}

func TestParseGroups(t *testing.T) {
	for text, want := range map[string]string{"0,1/2,3": "0,1/2,3", "3,0-2/4294967295": "0,1,2,3/4294967295", " 1, 1 ": "1"} {
		groups, err := analysis.ParseGroups("cores", text)
		if got := analysis.FormatGroups(groups); err != nil || got != want {
			t.Errorf("groups %q are parsed and formatted as %q, error %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1/", "a", "3-1", "0-4294967295", "4294967296", "-1", "1,,2"} {
		if groups, err := analysis.ParseGroups("cores", text); err == nil {
			t.Errorf("ParseGroups(%q) = %v, want an error", text, groups)
		}
	}
}
