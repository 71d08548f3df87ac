// Package options reads the command line of guilddonation.
//
//	o, err := options.Parse(os.Args[1:], os.Stderr)
//	if err != nil {
//		if !errors.Is(err, flag.ErrHelp) {
//			fmt.Fprintln(os.Stderr, err)
//		}
//		os.Exit(options.ExitCode(err)) // 2 for unusable flags, 0 for -help
//	}
//
// No error of this package repeats what was given: a password put into a URL, or a URL put after the wrong flag, must not end in a log. The package reads
// no file, no environment and no clock.
package options
