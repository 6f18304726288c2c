package cli

import (
	"maps"
	"testing"
)

// TestJobLabels: the variables are those that the documentation of each CI system gives as examples.
func TestJobLabels(t *testing.T) {
	for name, c := range map[string]struct {
		environment, want map[string]string
		text              string
	}{
		"none": {map[string]string{"USER": "kim", "JOB_NAME": "x"}, map[string]string{}, ""},
		"GitHub": {
			map[string]string{
				"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "octo/hello",
				"GITHUB_RUN_ID": "1658821493", "GITHUB_RUN_NUMBER": "3", "GITHUB_WORKFLOW": "CI", "GITHUB_JOB": "build",
				"GITHUB_ACTOR": "octocat",
			},
			map[string]string{
				"ci-job": "CI/build", "ci-user": "octocat",
				"ci-url": "https://github.com/octo/hello/actions/runs/1658821493",
			},
			"CI/build by octocat https://github.com/octo/hello/actions/runs/1658821493",
		},
		"Gitea": {
			map[string]string{
				"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": "true", "GITHUB_SERVER_URL": "https://gitea.example.org/",
				"GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "77", "GITHUB_RUN_NUMBER": "3", "GITHUB_JOB": "test",
			},
			map[string]string{"ci-job": "test", "ci-url": "https://gitea.example.org/a/b/actions/runs/3"},
			"test https://gitea.example.org/a/b/actions/runs/3",
		},
		"GitLab": {
			map[string]string{
				"GITLAB_CI": "true", "CI_JOB_URL": "https://gitlab.com/a/b/-/jobs/1", "CI_JOB_NAME": "unit",
				"CI_PROJECT_PATH": "a/b", "GITLAB_USER_LOGIN": "kim",
			},
			map[string]string{"ci-job": "a/b/unit", "ci-url": "https://gitlab.com/a/b/-/jobs/1", "ci-user": "kim"},
			"a/b/unit by kim https://gitlab.com/a/b/-/jobs/1",
		},
		"Jenkins": {
			map[string]string{
				"JENKINS_URL": "https://ci.example.org/", "JOB_NAME": "nightly", "BUILD_USER_ID": "lee",
				"BUILD_URL": "https://ci.example.org/job/nightly/7/",
			},
			map[string]string{"ci-job": "nightly", "ci-url": "https://ci.example.org/job/nightly/7/", "ci-user": "lee"},
			"nightly by lee https://ci.example.org/job/nightly/7/",
		},
		"Buildkite": {
			map[string]string{
				"BUILDKITE": "true", "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/app/builds/1514",
				"BUILDKITE_JOB_ID": "e44f9784", "BUILDKITE_PIPELINE_SLUG": "app", "BUILDKITE_LABEL": "tests",
				"BUILDKITE_BUILD_CREATOR": "Kim Lee",
			},
			map[string]string{
				"ci-job": "app/tests", "ci-url": "https://buildkite.com/acme/app/builds/1514#e44f9784",
				"ci-user": "Kim Lee",
			},
			"app/tests by Kim Lee https://buildkite.com/acme/app/builds/1514#e44f9784",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := JobLabels(func(variable string) string { return c.environment[variable] })
			if !maps.Equal(got, c.want) || JobText(got) != c.text {
				t.Errorf("got %v, %q; want %v, %q", got, JobText(got), c.want, c.text)
			}
		})
	}
}
