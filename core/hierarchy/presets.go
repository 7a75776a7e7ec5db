package hierarchy

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
