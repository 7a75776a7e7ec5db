package hierarchy

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// DefaultLineBytes is the default line size.
const DefaultLineBytes = 64

const (
	cacheForm  = "NAME=SIZE,WAYS[,LINE][,PROPERTY…], for example L1=32KiB,8 or L2=1MiB,full,64,latency=12"
	properties = "only these properties after SIZE, WAYS and LINE, each at most once: latency=CYCLES, bandwidth=BYTES per cycle, shared=CORES or shared=all, " +
		"subblock=BYTES, prefetch=KIND[:degree=N][:distance=N]…, hashed, lru, plru, random, fifo, bit-plru, nru, lfu, srrip, brrip, drrip, " +
		"inclusive, exclusive, write-through, no-allocate, allocate-whole; instructions for an instruction cache; tlb for a TLB, whose SIZE is a number of entries"
)

// ParseCache parses NAME=SIZE,WAYS[,LINE], for example "L1=32KiB,8" or "L2=1MiB,full,64". If WAYS
// is "full", the cache is fully associative. LINE is 64 by default. The following properties may
// follow, in any order and each at most once: latency=, bandwidth=, shared=, subblock=, prefetch=
// (see [ParsePrefetch]), hashed, a replacement policy (see [Replacements]), inclusive,
// non-inclusive, exclusive, write-back, write-through, no-allocate and allocate-whole. The defaults
// are lru, non-inclusive, write-back, and allocating on a write. The error is a
// [*trace.OptionError].
func ParseCache(s string) (Cache, error) {
	bad := &trace.OptionError{Option: "cache", Got: s, Want: cacheForm}
	name, rest, ok := strings.Cut(s, "=")
	fields := strings.Split(rest, ",")
	if name = strings.TrimSpace(name); !ok || name == "" || len(fields) < 2 {
		return Cache{}, bad
	}
	c := Cache{Name: name, LineBytes: DefaultLineBytes}
	var err error
	if c.SizeBytes, err = ParseSize(fields[0]); err != nil {
		return Cache{}, err
	}
	if c.Ways, ok = parseWays(fields[1]); !ok {
		return Cache{}, bad
	}
	more := fields[2:]
	if len(more) > 0 {
		if n, err := ParseSize(more[0]); err == nil && n < 1<<32 {
			c.LineBytes, more = uint32(n), more[1:]
		}
	}
	if !c.parseProperties(more) {
		bad.Want = properties
		return Cache{}, bad
	}
	return c, c.Check()
}

const allCores = "all"

func parseWays(s string) (ways uint32, ok bool) {
	s = strings.TrimSpace(s)
	if s == "full" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && n > 0
}

// flagProperties lists the properties that have no value. A cache can have at most one property of
// each group.
var flagProperties = map[string]struct {
	group string
	set   func(*Cache)
}{
	"hashed":         {"hashed", func(c *Cache) { c.Hashed = true }},
	"inclusive":      {"inclusion", func(c *Cache) { c.Inclusion = Inclusive }},
	"non-inclusive":  {"inclusion", func(c *Cache) { c.Inclusion = NonInclusive }},
	"exclusive":      {"inclusion", func(c *Cache) { c.Inclusion = Exclusive }},
	"write-back":     {"write", func(c *Cache) { c.Write = WriteOf(false, c.Write.Around()) }},
	"write-through":  {"write", func(c *Cache) { c.Write = WriteOf(true, c.Write.Around()) }},
	"no-allocate":    {"allocate", func(c *Cache) { c.Write = WriteOf(c.Write.Through(), true) }},
	"allocate-whole": {"allocate", func(c *Cache) { c.Write = WriteBackWhole }},
}

// WriteOf returns the write policy with the given properties: whether it writes through, and
// whether store misses bypass (write around) the cache.
func WriteOf(through, around bool) Write {
	switch {
	case through && around:
		return WriteThroughAround
	case through:
		return WriteThrough
	case around:
		return WriteBackAround
	}
	return WriteBack
}

// parseProperties sets the given properties, and reports whether all of them are valid.
func (c *Cache) parseProperties(properties []string) bool {
	seen := map[string]bool{}
	for _, property := range properties {
		key, value, valued := strings.Cut(strings.TrimSpace(property), "=")
		key = strings.TrimSpace(key)
		group, ok := key, false
		if valued {
			ok = c.setNumber(key, strings.TrimSpace(value))
		} else if word, known := flagProperties[key]; known {
			word.set(c)
			group, ok = word.group, true
		} else if i := slices.Index(replacementWords[:], key); i >= 0 {
			c.Replacement = Replacement(i)
			group, ok = "replacement", true
		}
		if !ok || seen[group] {
			return false
		}
		seen[group] = true
	}
	return true
}

// setNumber sets a property that has a value.
func (c *Cache) setNumber(key, value string) (ok bool) {
	switch key {
	case "latency":
		c.LatencyCycles, ok = ParsePositive(value)
	case "bandwidth":
		c.BytesPerCycle, ok = ParsePositive(value)
	case "subblock":
		n, err := ParseSize(value)
		c.SubBlockBytes, ok = uint32(n), err == nil && n > 0 && n <= 1<<20
	case "prefetch":
		c.Prefetch, ok = ParsePrefetch(value)
	case "shared":
		if value == allCores {
			c.SharedBy = AllCores
			return true
		}
		n, err := strconv.ParseUint(value, 10, 32)
		c.SharedBy, ok = uint32(n), err == nil && n > 0
	}
	return ok
}

// maxQuantity is the upper limit of latencies, bandwidths and clock rates.
const maxQuantity = 1e12

// ParsePositive parses a positive number.
func ParsePositive(s string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && x > 0 && x <= maxQuantity
}

// String formats the cache as text that ParseCache accepts.
func (c Cache) String() string {
	ways := "full"
	if c.Ways > 0 {
		ways = strconv.FormatUint(uint64(c.Ways), 10)
	}
	s := c.Name + "=" + FormatSize(c.SizeBytes) + "," + ways
	if c.LineBytes != DefaultLineBytes {
		s += "," + strconv.FormatUint(uint64(c.LineBytes), 10)
	}
	if c.LatencyCycles > 0 {
		s += ",latency=" + FormatNumber(c.LatencyCycles)
	}
	if c.BytesPerCycle > 0 {
		s += ",bandwidth=" + FormatNumber(c.BytesPerCycle)
	}
	switch {
	case c.SharedBy == AllCores:
		s += ",shared=" + allCores
	case c.SharedBy > 0:
		s += ",shared=" + strconv.FormatUint(uint64(c.SharedBy), 10)
	}
	if c.SubBlockBytes > 0 {
		s += ",subblock=" + strconv.FormatUint(uint64(c.SubBlockBytes), 10)
	}
	if c.Prefetch.Kind != NoPrefetch {
		s += ",prefetch=" + c.Prefetch.String()
	}
	for _, word := range c.nonDefaults() {
		s += "," + word
	}
	return s
}

// nonDefaults returns the words for all properties that differ from their defaults.
func (c Cache) nonDefaults() (list []string) {
	for _, w := range []struct {
		word  string
		holds bool
	}{
		{"hashed", c.Hashed},
		{c.Replacement.String(), c.Replacement != LRU},
		{"inclusive", c.Inclusion == Inclusive}, {"exclusive", c.Inclusion == Exclusive},
		{"write-through", c.Write.Through()}, {"no-allocate", c.Write.Around()}, {"allocate-whole", c.Write == WriteBackWhole},
	} {
		if w.holds {
			list = append(list, w.word)
		}
	}
	return list
}

// FormatNumber formats a number with the fewest digits that still identify it exactly.
func FormatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// ParseMemory parses latency=CYCLES, bandwidth=BYTES per cycle, or both, separated by a comma. The
// error is a [*trace.OptionError].
func ParseMemory(s string) (Memory, error) {
	var c Cache
	c.Name = "memory"
	fields := strings.Split(s, ",")
	if !c.parseProperties(fields) || c.SharedBy != 0 || c.SubBlockBytes != 0 || c.Prefetch != (Prefetch{}) || len(c.nonDefaults()) > 0 || c.LatencyCycles == 0 && c.BytesPerCycle == 0 {
		return Memory{}, &trace.OptionError{Option: "memory", Got: s, Want: "latency=CYCLES, bandwidth=BYTES per cycle, or both, for example latency=230,bandwidth=8"}
	}
	return Memory{c.LatencyCycles, c.BytesPerCycle}, nil
}

// String formats the memory as text that ParseMemory accepts.
func (m Memory) String() string {
	var fields []string
	if m.LatencyCycles > 0 {
		fields = append(fields, "latency="+FormatNumber(m.LatencyCycles))
	}
	if m.BytesPerCycle > 0 {
		fields = append(fields, "bandwidth="+FormatNumber(m.BytesPerCycle))
	}
	return strings.Join(fields, ",")
}

const units = "KMGT"

// ParseSize parses a number of bytes, ignoring case: 32KiB, 32KB, 32K, 32768. The prefixes K, M, G
// and T always represent powers of 1024. The error is a [*trace.OptionError].
func ParseSize(s string) (uint64, error) {
	bad := &trace.OptionError{Option: "size", Got: s, Want: "a number of bytes, for example 32KiB, 32K or 32768"}
	whole := strings.ToUpper(strings.TrimSpace(s))
	t := strings.TrimSuffix(strings.TrimSuffix(whole, "B"), "I")
	shift := 0
	if n := len(t); n > 0 {
		if i := strings.IndexByte(units, t[n-1]); i >= 0 {
			shift, t = 10*(i+1), t[:n-1]
		} else if strings.HasSuffix(strings.TrimSuffix(whole, "B"), "I") {
			return 0, bad
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(t), 10, 64)
	if err != nil || bits.Len64(n)+shift > 64 {
		return 0, bad
	}
	return n << shift, nil
}

// FormatSize formats a number of bytes in the largest unit that divides it: 32KiB, 1536KiB, 1000.
func FormatSize(bytes uint64) string {
	unit := 0
	for unit < len(units) && bytes != 0 && bytes%1024 == 0 {
		bytes /= 1024
		unit++
	}
	s := strconv.FormatUint(bytes, 10)
	if unit > 0 {
		s += units[unit-1:unit] + "iB"
	}
	return s
}
