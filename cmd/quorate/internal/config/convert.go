package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/boskos"
	"github.com/quorate/quorate/compat/keystone"
	"github.com/quorate/quorate/compat/quotamanager"
	"github.com/quorate/quorate/compat/yunikorn"
	"github.com/quorate/quorate/compat/zuul"
	"github.com/quorate/quorate/internal/manifest"
)

// converter converts the configuration of another system to trees, with notes about parts that differ. An error has all
// problems, one per line.
type converter func([]byte) ([]*quoratev1.Tree, []string, error)

// yunikornFormat is the format whose types of resources are not all in the file.
const yunikornFormat = "yunikorn"

// converters are the formats besides manifests.
var converters = map[string]converter{
	"boskos":   convertWith(boskos.Convert),
	"keystone": convertWith(keystone.Convert),
	"quota-manager": convertWith(func(text []byte) (*compat.Conversion, error) {
		return quotamanager.Convert(text, quotamanager.Options{})
	}),
	yunikornFormat: yunikornConverter(nil),
	"zuul":         convertWith(zuul.Convert),
}

func convertWith(convert func([]byte) (*compat.Conversion, error)) converter {
	return func(text []byte) ([]*quoratev1.Tree, []string, error) {
		c, err := convert(text)
		if err != nil {
			return nil, nil, err
		}
		return c.Trees, c.Notes, nil
	}
}

func yunikornConverter(counted []string) converter {
	return convertWith(func(text []byte) (*compat.Conversion, error) {
		return yunikorn.Convert(text, yunikorn.Count(counted...))
	})
}

func converterNames() []string { return slices.Sorted(maps.Keys(converters)) }

type formatOptions struct {
	from    string
	counted []string
}

// maxCounted is the most types that are named by flags; a tree has a bound of its own.
const maxCounted = 500

func (o *formatOptions) addFlags(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&o.from, "from", "", usage+cli.JoinNames(converters))
	cmd.Flags().StringArrayVar(&o.counted, "also-count", nil,
		"with --from yunikorn, also count this `TYPE` of resource, which no limit names; may be repeated")
	cli.CompleteFlag(cmd, "from", converterNames()...)
}

func (o *formatOptions) converter() (converter, error) {
	convert, known := converters[o.from]
	switch {
	case o.from == "":
		return nil, cli.Usagef("--also-count is for --from yunikorn; a manifest names its resources")
	case !known:
		return nil, cli.Usagef("there is no format %q; there are: %s", o.from, cli.JoinNames(converters))
	case len(o.counted) > maxCounted:
		return nil, cli.Usagef("--also-count is given %d times; %d are allowed", len(o.counted), maxCounted)
	case len(o.counted) == 0:
		return convert, nil
	case o.from == yunikornFormat:
		return yunikornConverter(o.counted), nil
	}
	return nil, cli.Usagef("--also-count is for --from yunikorn; files of %s name all their resources", o.from)
}

type convertOptions struct {
	*cli.Env
	formatOptions
}

func newConvertCmd(c *cli.Env) *cobra.Command {
	o := &convertOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "convert --from FORMAT FILE",
		Short: "Convert the limits of another system to a manifest",
		Long: `Convert the configuration of another system to a manifest for "quorate apply"; no server is asked.
Formats:` +
			cli.JoinNames(converters) + `.

Notes about parts that were left out or renamed go to standard error. If the file cannot be converted, every problem is
listed there, nothing is printed, and the exit code is 1. With -o json, print the API request that would apply the
trees.`,
		Example: `  quorate manifest convert --from zuul nodepool.yaml > tenants.yaml
  quorate manifest convert --from quota-manager - < quotas.json | quorate plan -f -`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.runConvert(args[0]) },
	}
	o.addFlags(cmd, "the format of the file: ")
	return cmd
}

func (o *convertOptions) runConvert(file string) error {
	if o.from == "" {
		return cli.Usagef("name the format of the file: --from %s", strings.Join(converterNames(), ", --from "))
	}
	convert, err := o.converter()
	if err != nil {
		return err
	}
	name, text, err := readText(o.Env, file)
	if err != nil {
		return err
	}
	trees, notes, err := convert(text)
	if err != nil {
		o.Messagef("%s", cli.PrefixLines(name, err))
		return errNotConverted
	}
	o.PrintNotes(name, notes)
	return printManifest(o.Env, &manifest.Manifest{Trees: trees}, true)
}

// printManifest writes a manifest, or the request to apply it, which keeps bindings if the manifest cannot have them.
func printManifest(c *cli.Env, m *manifest.Manifest, keepAccess bool) error {
	if c.Output == cli.OutputJSON || c.Output == cli.OutputJSONL {
		request := m.ApplyRequest()
		request.KeepAccess = keepAccess
		return c.Print(request, nil)
	}
	text, err := manifest.Format(m)
	if err != nil {
		return err
	}
	return c.Write(text)
}
