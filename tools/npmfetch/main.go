// Npmfetch puts npm packages that site/package-lock.json pins into
// site/node_modules, as `npm ci --ignore-scripts` would, without npm and the
// hundred packages that a system installs for it: those that are named, with what
// they need, or all. Packages for other machines are left out.
//
//  1. Of every such package, the version in
//     node_modules/NAME/package.json is compared; a match needs nothing.
//  2. The archive of another is downloaded from the registry and compared with
//     the lock file's SHA-512 before a byte of it is unpacked.
//  3. It is unpacked into a folder beside its place, plain files only, within
//     bounds, and renamed into place when it is whole.
//
// Nothing that it fetches is run. The registry is $npm_config_registry, else
// $NPM_CONFIG_REGISTRY, else https://registry.npmjs.org.
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
