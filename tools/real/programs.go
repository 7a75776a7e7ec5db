package main

// program is a real program. The commands run in a shell, with these variables: CC, CXX and FC are
// the compilers, OUT is the path of the executable, AT is a folder for inputs, and PROGRAMS is the
// folder with files that this tool adds. The commands of build run in the folder of the source.
type program struct {
	name, source    string // the name, and Debian's source package or a Go module
	compiler, input string // for the page
	build, run      string
}

var programs = []program{
	{
		name: "bzip2 1.0.8", source: "bzip2", compiler: "clang -O2", input: "compresses its own source",
		build: `$CC -w -O2 -D_FILE_OFFSET_BITS=64 -o $OUT bzip2.c blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c
			cat *.c >$AT/input`,
		run: `$OUT -9 -c input | cksum`,
	},
	{
		name: "Lua 5.4.4", source: "lua5.4", compiler: "clang -O2", input: "tables, sorting, strings, closures, recursion",
		build: `cd src; rm -f luac.c; echo '#define DEB_HOST_MULTIARCH ""' >lua5.4-deb-multiarch.h; $CC -w -O2 -DLUA_USE_POSIX -o $OUT *.c -lm`,
		run:   `$OUT $PROGRAMS/run.lua`,
	},
	{
		name: "zstd 1.5.4", source: "libzstd", compiler: "clang -O2", input: "compresses its own source at level 9",
		build: `$CC -w -O2 -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -DZSTD_LEGACY_SUPPORT=0 -Ilib -Ilib/common -Iprograms -o $OUT \
				lib/common/*.c lib/compress/*.c lib/decompress/*.c lib/dictBuilder/*.c programs/*.c -lpthread
			cat lib/compress/*.c >$AT/input`,
		run: `$OUT -9 -c -q --single-thread input | cksum`,
	},
	{
		name: "SQLite 3.46.1", source: "github.com/mattn/go-sqlite3@v1.14.28", compiler: "clang -O2", input: "tables, an index, joins and sorting, in memory",
		build: `$CC -w -O2 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -I. -DROWS='"3000"' -o $OUT sqlite3-binding.c \
				$PROGRAMS/../../capture/testdata/blocks/database.c -lm`,
		run: `$OUT`,
	},
	{
		name: "Redis 7.0.15", source: "redis", compiler: "clang -O2", input: "a server, and a client that sends 30,000 commands one after the other; most of the time is the untraced client's",
		build: `make -j2 -C src redis-server MALLOC=libc CC=$CC OPTIMIZATION=-O2 USE_SYSTEMD=no REDIS_LDFLAGS= V=1
			cp src/redis-server $OUT
			[ -e $AT/client ] || { make -C src redis-cli MALLOC=libc CC=$CC OPTIMIZATION=-O2 USE_SYSTEMD=no; cp src/redis-cli $AT/client; }
			awk 'BEGIN { for (i = 0; i < 10000; i++) { k = i * 7919 % 3001; print "SET k" k " v" i; print "ZADD z " i * 31 % 997 " m" k; print "LPUSH l" i % 50 " " i } }' >$AT/commands`,
		run: `rm -f s; $OUT --port 0 --unixsocket s --save "" --daemonize no --logfile /dev/null --dir . >/dev/null & p=$!
			while [ ! -S s ]; do sleep 0.01; done
			./client -s s <commands | cksum
			./client -s s zrange z 0 20 withscores | cksum
			./client -s s shutdown nosave; wait $p`,
	},
	{
		name: "LevelDB 1.23", source: "leveldb", compiler: "clang++ -O2", input: "writes, compacts and reads 20,000 keys",
		build: `$CXX -w -O2 -std=c++17 -DLEVELDB_PLATFORM_POSIX=1 -I. -Iinclude -o $OUT \
				$(ls db/*.cc table/*.cc util/*.cc | grep -v -e _test -e bench -e testutil -e windows -e leveldbutil) -x c++ $PROGRAMS/leveldb.cc -lpthread`,
		run: `rm -rf db; $OUT db`,
	},
	{
		name: "jq 1.6", source: "jq", compiler: "clang -O2", input: "groups 3,000 records",
		build: `sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' src/builtin.jq >src/builtin.inc
			echo '#define JQ_VERSION "1.6"' >src/version.h
			$CC -w -O2 -D_GNU_SOURCE -DHAVE_MEMMEM -DHAVE_TIMEGM -DHAVE_GMTIME_R -DHAVE_ISATTY -DHAVE_SETLOCALE -DIEEE_8087 -DHAVE_PTHREAD -I. -Isrc -o $OUT \
				$(ls src/*.c | grep -v -e inject_errors) -lm -lpthread
			awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"id\":%d,\"name\":\"n%d\",\"tags\":[\"t%d\",\"t%d\"],\"size\":%.2f}\n", i, i * 7919 % 97, i % 5, i % 11, i * 1.37 }' >$AT/input`,
		run: `$OUT -c -s 'group_by(.name) | map({name: .[0].name, total: (map(.size) | add), tags: ([.[].tags[]] | unique)})' input | cksum`,
	},
	{
		name: "LAPACK 3.11", source: "lapack", compiler: "flang -O2", input: "solves 250 linear equations (dgesv)",
		build: `$FC -O2 -o $OUT $PROGRAMS/solve.f90 $(for f in dgesv dgetrf dgetrf2 dgetrs dlaswp ilaenv ieeeck iparmq iparam2stage; do ls SRC/$f.f* 2>/dev/null; done) \
				INSTALL/dlamch.f $(for f in dgemm dtrsm dscal idamax lsame xerbla; do ls BLAS/SRC/$f.f; done)`,
		run: `$OUT`,
	},
	{
		name: "FastTree 2.1.11", source: "fasttree", compiler: "clang -O2 -fopenmp", input: "a tree of 60 sequences, two OpenMP threads",
		build: `$CC -w -O2 -fopenmp -DOPENMP -Wl,-rpath,/usr/lib/llvm-19/lib -o $OUT fasttree.c -lm
			awk 'BEGIN { srand(7); for (i = 0; i < 60; i++) { print ">s" i; s = ""; for (j = 0; j < 120; j++) s = s substr("ACGT", 1 + (rand() < 0.7 ? j * 7 % 4 : int(4 * rand())), 1); print s } }' >$AT/input`,
		run: `OMP_NUM_THREADS=2 $OUT -nt -quiet -nosupport input | cksum`,
	},
	{
		name: "Rust", compiler: "rustc 1.63 (LLVM 14) -O, clang", input: "counts the gaps between the primes below 2,000,000",
		build: `PATH=/usr/bin:$PATH; rustc -O -g -C codegen-units=1 -C prefer-dynamic --emit=llvm-bc -o $AT/primes.bc primes.rs
			$CC -w -O2 $AT/primes.bc $(find $(rustc --print sysroot)/lib -maxdepth 2 -name 'libstd-*.so') -o $OUT`,
		run: `$OUT`,
	},
}
