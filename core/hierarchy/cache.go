package hierarchy

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// DefaultLineBytes is the line size of a cache that does not say.
const DefaultLineBytes = 64

const cacheForm = "NAME=SIZE,WAYS[,LINE], as in L1=32KiB,8 or L2=1MiB,full,64"

// ParseCache reads NAME=SIZE,WAYS[,LINE], as in "L1=32KiB,8" or
// "L2=1MiB,full,64". WAYS "full" is fully associative; LINE is 64 by default.
// The error is a [*trace.OptionError].
func ParseCache(s string) (Cache, error) {
	bad := &trace.OptionError{Option: "cache", Got: s, Want: cacheForm}
	name, rest, ok := strings.Cut(s, "=")
	fields := strings.Split(rest, ",")
	if name = strings.TrimSpace(name); !ok || name == "" || len(fields) < 2 || len(fields) > 3 {
		return Cache{}, bad
	}
	c := Cache{Name: name, LineBytes: DefaultLineBytes}
	var err error
	if c.SizeBytes, err = ParseSize(fields[0]); err != nil {
		return Cache{}, err
	}
	if ways := strings.TrimSpace(fields[1]); ways != "full" {
		n, err := strconv.ParseUint(ways, 10, 32)
		if err != nil || n == 0 {
			return Cache{}, bad
		}
		c.Ways = uint32(n)
	}
	if len(fields) == 3 {
		n, err := ParseSize(fields[2])
		if err != nil || n > 1<<32-1 {
			return Cache{}, bad
		}
		c.LineBytes = uint32(n)
	}
	return c, c.Check()
}

// String writes the cache the way ParseCache reads it.
func (c Cache) String() string {
	ways := "full"
	if c.Ways > 0 {
		ways = strconv.FormatUint(uint64(c.Ways), 10)
	}
	s := c.Name + "=" + FormatSize(c.SizeBytes) + "," + ways
	if c.LineBytes != DefaultLineBytes {
		s += "," + strconv.FormatUint(uint64(c.LineBytes), 10)
	}
	return s
}

const units = "KMGT"

// ParseSize reads a number of bytes: 32KiB, 32KB, 32K, 32768, in capitals or
// not. K, M, G and T are powers of 1024 however they are written, as sizes of
// caches are. The error is a [*trace.OptionError].
func ParseSize(s string) (uint64, error) {
	bad := &trace.OptionError{Option: "size", Got: s, Want: "a number of bytes, as in 32KiB, 32K or 32768"}
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

// FormatSize writes a number of bytes the way ParseSize reads it, in the
// largest unit that keeps it whole: 32KiB, 1536KiB, 1000.
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

// Presets are hierarchies to start from, by name: the data caches that one core
// of a processor sees.
func Presets() []Hierarchy {
	const line, kib, mib = 64, 1 << 10, 1 << 20
	return []Hierarchy{
		// Intel 64 and IA-32 Architectures Optimization Reference Manual, Haswell.
		{Name: "i7-4770K", Levels: []Cache{{Name: "L1", SizeBytes: 32 * kib, Ways: 8, LineBytes: line}, {Name: "L2", SizeBytes: 256 * kib, Ways: 8, LineBytes: line}, {Name: "L3", SizeBytes: 8 * mib, Ways: 16, LineBytes: line}}},
		// AMD Software Optimization Guide for the family 19h processors.
		{Name: "ryzen-5800x", Levels: []Cache{{Name: "L1", SizeBytes: 32 * kib, Ways: 8, LineBytes: line}, {Name: "L2", SizeBytes: 512 * kib, Ways: 8, LineBytes: line}, {Name: "L3", SizeBytes: 32 * mib, Ways: 16, LineBytes: line}}},
		// Arm Cortex-A72 Technical Reference Manual; BCM2711 has 1 MiB of L2.
		{Name: "raspberry-pi-4", Levels: []Cache{{Name: "L1", SizeBytes: 32 * kib, Ways: 2, LineBytes: line}, {Name: "L2", SizeBytes: 1 * mib, Ways: 16, LineBytes: line}}},
		// The setting of PPT-SASMM's evaluation (SASMM section 4).
		{Name: "sasmm", Levels: []Cache{{Name: "L1", SizeBytes: 8 * kib, Ways: 8, LineBytes: line}, {Name: "L2", SizeBytes: 128 * kib, Ways: 16, LineBytes: line}}},
	}
}
