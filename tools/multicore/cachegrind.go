package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/oracle/validate"
)

// cachegrind runs a program under it, with so many threads.
func (p *program) cachegrind(threads int, levels []hierarchy.Cache) (validate.Cachegrind, error) {
	var none validate.Cachegrind
	if p.plain == "" {
		plain := p.traced + ".plain"
		if said, err := exec.Command(compiler, p.arguments(plain)...).CombinedOutput(); err != nil {
			return none, fmt.Errorf("%s: %w: %s", p.name, err, said)
		}
		p.plain = plain
	}
	out := filepath.Join(p.folder, "cachegrind.out")
	cache := func(c hierarchy.Cache) string { return fmt.Sprintf("%d,%d,%d", c.SizeBytes, c.Ways, c.LineBytes) }
	cmd := exec.Command("valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file="+out,
		"--I1="+cache(levels[0]), "--D1="+cache(levels[0]), "--LL="+cache(levels[len(levels)-1]), p.plain)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads), "OMP_DYNAMIC=false", "OMP_WAIT_POLICY=passive")
	if said, err := cmd.CombinedOutput(); err != nil {
		return none, fmt.Errorf("cachegrind of %s: %w: %s", p.plain, err, said)
	}
	f, err := os.Open(out)
	if err != nil {
		return none, err
	}
	defer f.Close()
	return validate.ReadCachegrind(out, f, func(file string) bool { return file == p.source })
}
