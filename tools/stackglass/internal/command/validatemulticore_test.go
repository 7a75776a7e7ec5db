package command

func init() {
	goldenCommands = append(goldenCommands,
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multicore/redblack.2.sgt 4=testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --cache L2=128KiB,16,shared=all --cachegrind 4=testdata/multicore/redblack.4.cachegrind",
		"validate --multicore testdata/multicore/redblack.1.sgt 4=testdata/multicore/redblack.4.sgt --cache L1=1KiB,2 --interleave uniform --seed 7 --format csv",
		"validate --multicore testdata/multicore/redblack.1.sgt 3=testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --interleave block --format json",
		"validate --multicore testdata/multicore/redblack.2.sgt testdata/multicore/redblack.4.sgt --cache L1=8KiB,8",
		"validate --multicore testdata/multicore/redblack.1.sgt",
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multiply.sgp --cache L1=8KiB,8",
		"validate --multicore testdata/multicore/redblack.1.sgt 65=testdata/multicore/redblack.4.sgt --cache L1=8KiB,8",
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --division rows",
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --windows rate=0.1,least=100,weights=corrected --division region",
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --windows none",
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --windows least=1",
		"validate --multicore testdata/multicore/redblack.1.sgt testdata/multicore/redblack.4.sgt --cache L1=8KiB,8 --cachegrind testdata/multicore/redblack.4.cachegrind",
		"validate --multicore --loops testdata/multicore/redblack.1.sgt testdata/multicore/redblack.4.sgt",
	)
}
