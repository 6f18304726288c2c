package access

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/internal/manifest"
)

type jwtOptions struct {
	*cli.Env
	issuer, manifest, keysFile string
}

func newTokenCheckCmd(c *cli.Env) *cobra.Command {
	o := &jwtOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "check --issuer NAME FILE",
		Short: "Say which rules of an issuer hold for a JSON Web Token",
		Long: `Say which rules of an issuer hold for the JSON Web Token in a file (- for standard input), and in which
groups it puts its user. The exit code is 0 if a server would accept the token, and 1 if a rule does not hold.

The issuer is the one in the configuration of the cluster, which needs access.read, or in the manifest of --manifest, so
that rules can be tried before they are applied. The token is not sent to a server: this program reads the keys of the
issuer by itself, from where the issuer says. What a server refuses by "quorate refusal create" is not looked at.

The output shows claims of the token.`,
		Example: `  quorate token check --issuer github job.jwt
  quorate token check --issuer k8s --manifest access.yaml --keys-file k8s-keys.json /var/run/secrets/tokens/quorate`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.issuer, "issuer", "", "`NAME` of the issuer (required)")
	flags.StringVar(&o.manifest, "manifest", "", "take the issuer from this manifest, in place of the cluster: a `FILE`")
	flags.StringVar(&o.keysFile, "keys-file", "", "read the keys from this `FILE` (a JSON Web Key Set), in place of "+
		"where the issuer says; a keys-file of an issuer is on the servers")
	return cmd
}

type ruleResult struct {
	Rule   string `json:"rule"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`
}

func (o *jwtOptions) run(ctx context.Context, file string) error {
	if o.issuer == "" {
		return cli.Usagef("name the issuer with --issuer")
	}
	if o.Timeout <= 0 {
		return cli.Usagef("--timeout must be positive")
	}
	token, err := o.readToken(file)
	if err != nil {
		return err
	}
	issuer, err := o.findIssuer(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	results, err := explainToken(ctx, issuer, token)
	if err != nil {
		return err
	}
	if err := o.PrintValue(results, func(p *cli.Page) error { return p.Table(resultRows(results)) }); err != nil {
		return err
	}
	if slices.ContainsFunc(results, func(r ruleResult) bool { return !r.Holds && !r.isGroup() }) {
		return &cli.ExitError{Code: cli.ExitFailure, Ours: true}
	}
	return nil
}

// isGroup is true for a rule that only decides whether the user is in a group.
func (r ruleResult) isGroup() bool { return strings.HasPrefix(r.Rule, "group ") }

func resultRows(results []ruleResult) [][]string {
	rows := [][]string{{"RULE", "HOLDS", "DETAIL"}}
	for _, r := range results {
		holds := "no"
		if r.Holds {
			holds = "yes"
		}
		rows = append(rows, []string{r.Rule, holds, r.Detail})
	}
	return rows
}

// readToken strips white space around the token. It reads no more than it needs to see that a file is too long.
func (o *jwtOptions) readToken(file string) (string, error) {
	const whiteSpace = 1 << 10
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(o.In, authn.MaxJWTLength+whiteSpace))
		return strings.TrimSpace(string(text)), err
	}
	text, err := readAtMost(file, authn.MaxJWTLength+whiteSpace)
	return strings.TrimSpace(string(text)), err
}

func readAtMost(file string, most int64) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(opened, most))
}

func (o *jwtOptions) findIssuer(ctx context.Context) (authn.Issuer, error) {
	section, err := o.readSection(ctx)
	if err != nil {
		return authn.Issuer{}, err
	}
	var names []string
	for _, i := range section.GetIssuers() {
		if i.GetName() == o.issuer {
			return o.withKeysFile(issuerOf(i)), nil
		}
		names = append(names, i.GetName())
	}
	if len(names) == 0 {
		return authn.Issuer{}, fmt.Errorf("there is no issuer %s, and no other; or you lack access.read", o.issuer)
	}
	return authn.Issuer{}, fmt.Errorf("there is no issuer %s; there are %s", o.issuer, strings.Join(names, ", "))
}

func (o *jwtOptions) readSection(ctx context.Context) (*quoratev1.AccessSection, error) {
	if o.manifest != "" {
		text, err := readAtMost(o.manifest, manifest.MaxSize+1)
		if err != nil {
			return nil, err
		}
		m, err := manifest.Parse(o.manifest, text)
		if err != nil {
			return nil, cli.Usagef("%v", err)
		}
		return m.Access, nil
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	answer, err := quorate.Configuration.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{Read: o.ReadOptions()})
	return answer.GetAccess(), err
}

func (o *jwtOptions) withKeysFile(i authn.Issuer) authn.Issuer {
	if o.keysFile != "" {
		i.KeysURL, i.KeysFile = "", o.keysFile
	}
	return i
}

func issuerOf(i *quoratev1.Issuer) authn.Issuer {
	issuer := authn.Issuer{
		Name: i.GetName(), URL: i.GetUrl(), KeysURL: i.GetKeysUrl(), KeysFile: i.GetKeysFile(), Audience: i.GetAudience(),
		User: i.GetUser(), Require: claimRules(i.GetClaimRules()), Algorithms: i.GetAlgorithms(),
		MaxAge: time.Duration(i.GetMaxAgeMs()) * time.Millisecond,
	}
	for _, g := range i.GetGroups() {
		issuer.Groups = append(issuer.Groups, authn.GroupRule{Group: g.GetGroup(), When: claimRules(g.GetClaimRules())})
	}
	return issuer
}

func claimRules(rules []*quoratev1.ClaimRule) []authn.ClaimRule {
	var list []authn.ClaimRule
	for _, r := range rules {
		list = append(list, authn.ClaimRule{Claim: r.GetClaim(), Values: r.GetValues()})
	}
	return list
}

func explainToken(ctx context.Context, issuer authn.Issuer, token string) ([]ruleResult, error) {
	verifier := authn.NewJWTVerifier(authn.JWTOptions{})
	defer verifier.Close()
	if err := verifier.Configure([]authn.Issuer{issuer}); err != nil {
		return nil, err
	}
	findings, err := verifier.Explain(ctx, issuer.Name, token)
	if err != nil {
		return nil, err
	}
	var results []ruleResult
	for _, f := range findings {
		results = append(results, ruleResult{f.Rule, f.Holds, f.Detail})
	}
	return results, nil
}
