package command

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace/ppt"
)

// pptFiles names the files that PPT has beside a trace.
type pptFiles struct{ blocks, shared, counts, bounds string }

func (p *pptFiles) flags(f *pflag.FlagSet) {
	f.StringVar(&p.blocks, "ppt-blocks", "", "of a trace of PPT, the block table: lines BasicBlock: ID: (function, block), as a `FILE`")
	f.StringVar(&p.shared, "ppt-shared", "", "of a trace of PPT, shared_addresses.dat, as a `FILE` (default: what blocks of shared variables refer to)")
	f.StringVar(&p.counts, "ppt-counts", "", "of a trace of PPT, bb_counts.dat, as a `FILE`: hold the trace against it")
	f.StringVar(&p.bounds, "ppt-bounds", "", "of a trace of PPT, min_max_addr.dat, as a `FILE`: hold the trace against it")
}

// read reads those that are named.
func (p *pptFiles) read(into *sasmm.Files) (err error) {
	text := func(flag, name string) []byte {
		if name == "" || err != nil {
			return nil
		}
		b, wrong := os.ReadFile(name)
		if wrong != nil {
			err = usagef(flag, " ", name, ": ", reason(wrong))
		}
		return b
	}
	blocks, shared := text("--ppt-blocks", p.blocks), text("--ppt-shared", p.shared)
	counts, bounds := text("--ppt-counts", p.counts), text("--ppt-bounds", p.bounds)
	if err != nil {
		return err
	}
	if p.blocks != "" {
		if into.Blocks, err = ppt.ParseBlocks(p.blocks, blocks); err != nil {
			return err
		}
	}
	if p.shared != "" {
		if into.Shared, err = ppt.ParseShared(p.shared, shared); err != nil {
			return err
		}
	}
	if p.counts != "" {
		if into.Counts, err = ppt.ParseCounts(p.counts, counts); err != nil {
			return err
		}
	}
	if p.bounds != "" {
		found, err := ppt.ParseBounds(p.bounds, bounds)
		if err != nil {
			return err
		}
		into.Bounds = &found
	}
	return nil
}
