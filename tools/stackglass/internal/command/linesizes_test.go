package command

import "testing"

// TestMissingLineSize checks that errors about a missing line size contain advice, and explain
// default caches.
func TestMissingLineSize(t *testing.T) {
	inFolder(t, nil)
	for _, size := range []string{"32", "128"} {
		expectExit(t, stackglass("analyze", "demo:matmul-naive", "--lines", size, "-o", size+".sgp"), exitOK)
	}
	for line, want := range map[string]string{
		"what-if 32.sgp --cache L1=2KiB,8,128":                    "--lines 32,128",
		"what-if 128.sgp --cache L1=2KiB,8,32":                    "--lines 32,128",
		"compare 32.sgp 128.sgp --on what-if --cache L1=2KiB,8":   "--lines 32,64",
		"compare 32.sgp 128.sgp --on sites --cache L1=2KiB,8,128": "--lines 32,128",
		"compare 32.sgp 128.sgp --on sites":                       "32.sgp: the default cache, L1=32KiB,8, has lines of 64 bytes",
		"sites 128.sgp":                                           "--cache L1=32KiB,8,128",
		"export 32.sgp --to html --cache L1=2KiB,8":               "--lines 32,64",
	} {
		expectExit(t, stackglass(words(line)...), exitUsage, want)
	}
	if got := stackglass(words("sites 128.sgp --cache L1=32KiB,8,128")...); got.code != exitOK {
		t.Error(got)
	}
}
