package blob

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"weir"
)

// s3Config is what an s3:// URL says.
type s3Config struct {
	bucket      string
	prefix      string // "", or ends with a slash
	region      string
	endpoint    *url.URL // nil: Amazon's
	pathStyle   string   // true, false, auto
	credentials string   // a file, in the format of AWS
	profile     string
	conditional bool // the store has to honour If-None-Match
}

// s3Parameters are the parameters of an s3:// URL; others are refused by name.
var s3Parameters = [...]string{"region", "endpoint", "path_style", "credentials", "profile", "conditional_put"}

// parseS3 reads s3://bucket/prefix?region=…&endpoint=…. Its errors never repeat a value:
// somebody may have put a secret there.
func parseS3(raw string, env func(string) string) (s3Config, error) {
	rest := strings.TrimPrefix(raw, "s3://")
	place, query, _ := strings.Cut(rest, "?")
	c := s3Config{pathStyle: "auto", conditional: true}
	if strings.Contains(place, "@") || strings.Contains(place, ":") {
		return c, refuseCredentials("in front of the bucket")
	}
	var prefix string
	c.bucket, prefix, _ = strings.Cut(place, "/")
	if err := checkBucket(c.bucket); err != nil {
		return c, err
	}
	if prefix = strings.TrimSuffix(prefix, "/"); prefix != "" {
		if err := CheckKey(prefix); err != nil {
			return c, fmt.Errorf("%w (the prefix of storage s3://%s)", err, c.bucket)
		}
		c.prefix = prefix + "/"
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return c, fmt.Errorf("%w: storage s3://%s: what stands behind the ? is no list of name=value&name=value", weir.ErrInvalid, place)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := c.set(name, values[name]); err != nil {
			return c, err
		}
	}
	return c, c.complete(env)
}

// checkBucket holds a bucket's name to the rules that every store has: such a name is a
// part of a host name.
func checkBucket(name string) error {
	ok := len(name) >= 3 && len(name) <= 63 && !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, ".") &&
		!strings.HasSuffix(name, "-") && !strings.HasSuffix(name, ".") && !strings.Contains(name, "..")
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.')
	}
	if !ok {
		return fmt.Errorf("%w: storage s3://…: %q is no bucket name: 3 to 63 of a-z, 0-9, - and .; give s3://BUCKET/PREFIX?region=REGION", weir.ErrInvalid, name)
	}
	return nil
}

func refuseCredentials(where string) error {
	return fmt.Errorf("%w: storage s3://…: credentials do not belong into a URL (%s): it shows in process lists and logs; "+
		"give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or in a file with credentials=/PATH", weir.ErrInvalid, where)
}

// set takes one parameter.
func (c *s3Config) set(name string, values []string) error {
	if !slices.Contains(s3Parameters[:], name) {
		lower := strings.ToLower(name)
		for _, word := range []string{"key", "secret", "token", "password"} {
			if strings.Contains(lower, word) {
				return refuseCredentials("parameter " + name)
			}
		}
		return fmt.Errorf("%w: storage s3://%s: parameter %q is unknown%s; known are %s",
			weir.ErrInvalid, c.bucket, name, nearest(name, s3Parameters[:]), strings.Join(s3Parameters[:], ", "))
	}
	if len(values) != 1 || values[0] == "" {
		return fmt.Errorf("%w: storage s3://%s: parameter %s is given %d times; give it once, with a value", weir.ErrInvalid, c.bucket, name, len(values))
	}
	value := values[0]
	switch name {
	case "region":
		if !plain(value) {
			return c.wrong(name, "a region's name, such as eu-central-1")
		}
		c.region = value
	case "endpoint":
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return c.wrong(name, "http://HOST:PORT or https://HOST, and no more")
		}
		if u.User != nil {
			return refuseCredentials("in the endpoint")
		}
		c.endpoint = u
	case "path_style":
		if value != "true" && value != "false" && value != "auto" {
			return c.wrong(name, "true, false or auto")
		}
		c.pathStyle = value
	case "conditional_put":
		if value != "true" && value != "false" {
			return c.wrong(name, "true or false")
		}
		c.conditional = value == "true"
	case "credentials":
		c.credentials = value
	case "profile":
		c.profile = value
	}
	return nil
}

func (c *s3Config) wrong(name, want string) error {
	return fmt.Errorf("%w: storage s3://%s: parameter %s is %s", weir.ErrInvalid, c.bucket, name, want)
}

// complete fills in what the URL leaves out.
func (c *s3Config) complete(env func(string) string) error {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if c.region == "" {
			c.region = env(name)
		}
	}
	if c.region == "" && c.endpoint == nil {
		return fmt.Errorf("%w: storage s3://%s: Amazon S3 has to be told the bucket's region: add ?region=REGION or set AWS_REGION; "+
			"another store also needs endpoint=https://HOST", weir.ErrInvalid, c.bucket)
	}
	if c.region == "" {
		c.region = "us-east-1" // what stores without regions sign with
	}
	if c.endpoint == nil {
		c.endpoint = &url.URL{Scheme: "https", Host: "s3.amazonaws.com"} // the client makes it the region's
	}
	return nil
}

// nearest says ", did you mean x?" if one of the words is two changes or fewer away.
func nearest(name string, words []string) string {
	best, least := "", 3
	for _, w := range words {
		if d := distance(strings.ToLower(name), w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// distance counts the letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
