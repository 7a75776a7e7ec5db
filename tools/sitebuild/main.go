// Sitebuild builds site/dist, a folder that any static host can serve, from scratch and only from
// pinned sources:
//
//  1. app.wasm from ./wasm/app: the program of the page and of its workers; and unpack.wasm, from
//     ./wasm/unpack/program, which the page loads for rare compression formats and for answers.
//     After linking, tools/internal/wasmcode and the files lines.go, fold.go, symbols.go and
//     segments.go make both programs faster and smaller;
//  2. wasm_exec.js, from GOROOT, combined with wasm/worker/unfold.js, which restores the programs'
//     compacted function tables;
//  3. vugu.js, Vugu's helper script, from the pinned module: Vugu would eval the script, but the
//     page's policy forbids eval, so the script is served as a file;
//  4. uplot.js and uplot.css, and graph.js, which includes dagre, from the npm packages that
//     site/package-lock.json pins;
//  5. the files of site/static and site/demos, and index.html from site/index.tmpl with a card for
//     every demo. The page's scripts and styles are combined into page.js and page.css;
//  6. docs/, the manual, which goldmark renders from the Markdown in site/docs;
//  7. _headers with the content security policy, and precache.js, the list of files and hashes that
//     the service worker needs to make the whole site available offline;
//  8. a compressed copy (.br and .gz) of every file that becomes smaller by compression.
//
// The names of scripts, styles and programs contain hashes (see names.go). build/app.wasm.sizes.txt
// lists the code size of each package in app.wasm. The build is reproducible: the same sources
// always produce the same bytes. Compressed files are cached under build/ by the hash of their
// content, which makes a second run fast.
//
// From an existing folder, sitebuild also builds a single HTML file that needs no server
// (single.go), and an archive that contains both the folder and this file (bundle.go).
//
// Usage, from the repository's root:
//
//	go run ./tools/sitebuild [-dev]
//	go run ./tools/sitebuild -single build/stackglass.html
//	go run ./tools/sitebuild -zip build/stackglass.zip -version v1.2.3
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	dev := flag.Bool("dev", false, "do not write the compressed files")
	out := flag.String("o", "site/dist", "folder to build")
	single := flag.String("single", "", "write the whole folder into this single HTML `file`")
	bundle := flag.String("zip", "", "write the folder and the single HTML file into this archive `file`")
	version := flag.String("version", "development", "version named in the archive")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "sitebuild: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	b := &build{out: *out, compress: !*dev, log: os.Stderr}
	var err error
	switch {
	case *single != "":
		err = b.writeSingle(*single)
	case *bundle != "":
		err = b.writeBundle(*bundle, *version)
	default:
		err = b.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sitebuild:", err)
		os.Exit(1)
	}
}
