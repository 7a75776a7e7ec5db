// Npmfetch installs npm packages in site/node_modules, in the versions that site/package-lock.json
// pins: either the named packages with their dependencies, or all packages. Npmfetch does the same
// as `npm ci --ignore-scripts`, but requires neither npm nor the hundred packages that a Linux
// distribution installs with npm. Packages for other operating systems or architectures are
// skipped.
//
//  1. For each package, npmfetch reads the version in node_modules/NAME/package.json, and does
//     nothing if this is the pinned version.
//  2. Otherwise, npmfetch downloads the archive from the registry, and compares the archive's
//     SHA-512 checksum with the lock file before unpacking anything.
//  3. Npmfetch unpacks regular files, up to a size limit, into a temporary folder, and renames the
//     folder when it is complete.
//
// Npmfetch never runs a fetched file. The registry is $npm_config_registry if this variable is set,
// or else $NPM_CONFIG_REGISTRY, or else https://registry.npmjs.org.
//
// Usage, from the repository's root:
//
//	go run ./tools/npmfetch [-C site] [NAME …]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	folder := flag.String("C", "site", "folder with package-lock.json")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f := &fetcher{
		folder:   *folder,
		names:    flag.Args(),
		registry: strings.TrimRight(cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"), "https://registry.npmjs.org"), "/"),
		client:   &http.Client{Timeout: 5 * time.Minute},
		log:      os.Stderr,
	}
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "npmfetch:", err)
		os.Exit(1)
	}
}
