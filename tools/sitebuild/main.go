// Sitebuild makes site/dist, the folder that any static host can serve, from scratch and from pinned
// sources only:
//
//  1. app.wasm from ./wasm/app: the page's program and its worker's in one file; and unpack.wasm,
//     from ./wasm/unpack/program, which it loads for rare compressions and for answers. After linking,
//     tools/internal/wasmcode makes both faster and smaller, and so do lines.go, fold.go, symbols.go and
//     segments.go;
//  2. wasm_exec.js, from GOROOT, with wasm/worker/unfold.js, which reverses what folds them;
//  3. vugu.js, Vugu's helper script, from the pinned module: Vugu evals that string, which the page's
//     policy forbids, so it is served as a file;
//  4. uplot.js and uplot.css, and graph.js with dagre in it, from the npm packages that
//     site/package-lock.json pins;
//  5. the files of site/static and site/demos, and index.html from site/index.tmpl with a card for
//     every demo. Scripts and styles of the page are joined to page.js and page.css;
//  6. docs/, the manual, from site/docs: goldmark renders the Markdown;
//  7. _headers with the content security policy, and precache.js, the list of files and hashes by
//     which the service worker takes the whole site offline;
//  8. .br and .gz siblings of every file that compresses.
//
// Scripts, styles and programs get names with hashes: see names.go. build/app.wasm.sizes.txt lists the size
// of the code of each package in the program. The same sources make the same bytes. Compressed files are
// kept under build/ by the hash of their content, which makes a second run quick.
//
// From an existing folder it makes two more forms of the page: one HTML file that needs no server
// (single.go), and an archive of both (bundle.go).
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
	dev := flag.Bool("dev", false, "leave the packed files out")
	out := flag.String("o", "site/dist", "folder to build")
	single := flag.String("single", "", "make this one HTML `file` of the folder")
	bundle := flag.String("zip", "", "make this archive, a `file`, of the folder and the one HTML file")
	version := flag.String("version", "development", "what the archive calls itself")
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
