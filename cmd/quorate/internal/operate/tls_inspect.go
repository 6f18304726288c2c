package operate

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/pki"
)

type certificateFacts struct {
	Subject     string    `json:"subject"`
	Role        string    `json:"role"`
	Hosts       []string  `json:"hosts"`
	Issuer      string    `json:"issuer"`
	From        time.Time `json:"from"`
	Until       time.Time `json:"until"`
	Fingerprint string    `json:"fingerprint"`
}

func newTLSShowCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show whose a certificate is, for which hosts, and until when",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := pki.Inspect(args[0])
			if err != nil {
				return err
			}
			facts := make([]certificateFacts, 0, len(list))
			for _, certificate := range list {
				facts = append(facts, factsOf(certificate))
			}
			return c.PrintValue(facts, func(p *cli.Page) error { return drawFacts(p, facts) })
		},
	}
}

func factsOf(c *x509.Certificate) certificateFacts {
	digest := sha256.Sum256(c.Raw)
	f := certificateFacts{
		Subject: c.Subject.CommonName, Role: "none", Hosts: append([]string{}, c.DNSNames...),
		Issuer: c.Issuer.CommonName,
		From:   c.NotBefore.UTC(), Until: c.NotAfter.UTC(), Fingerprint: hex.EncodeToString(digest[:]),
	}
	for _, ip := range c.IPAddresses {
		f.Hosts = append(f.Hosts, ip.String())
	}
	role, err := pki.RoleOf(c)
	switch {
	case c.IsCA:
		f.Role = "authority"
	case err == nil:
		f.Role = role.String()
	}
	return f
}

func drawFacts(p *cli.Page, list []certificateFacts) error {
	for i, f := range list {
		if i > 0 {
			p.Linef("")
		}
		if err := p.Table(f.factRows()); err != nil {
			return err
		}
	}
	return nil
}

func (f certificateFacts) factRows() [][]string {
	return [][]string{
		{"subject", f.Subject},
		{"role", f.Role},
		{"hosts", strings.Join(f.Hosts, " ")},
		{"issuer", f.Issuer},
		{"from", f.From.Format(time.RFC3339)},
		{"until", fmt.Sprintf("%s (%s)", f.Until.Format(time.RFC3339), daysLeft(time.Until(f.Until)))},
		{"sha256", f.Fingerprint},
	}
}

func daysLeft(left time.Duration) string {
	if left < 0 {
		return "expired"
	}
	return fmt.Sprintf("%d days left", int(left/day))
}
