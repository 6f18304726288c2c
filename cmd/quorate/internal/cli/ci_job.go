package cli

import (
	"cmp"
	"strings"
)

// Labels of allocations that name the job of a CI system which holds them.
const jobNameLabel, jobURLLabel, jobUserLabel = "ci-job", "ci-url", "ci-user"

// longestLabel is the most bytes of a label that the API takes.
const longestLabel = 256

// JobLabels returns labels with the name, the page and the user of the CI job that runs this process, as far as its
// environment has them; none outside of GitHub Actions, Gitea Actions, GitLab, Buildkite and Jenkins.
func JobLabels(getenv func(string) string) map[string]string {
	name, page, user := jobOf(getenv)
	labels := map[string]string{}
	for key, value := range map[string]string{jobNameLabel: name, jobURLLabel: page, jobUserLabel: user} {
		if value != "" && len(value) <= longestLabel {
			labels[key] = value
		}
	}
	return labels
}

// jobOf reads the variables of the CI systems. Gitea sets those of GitHub too; the number of a run in its addresses is
// the one of the workflow's runs.
func jobOf(getenv func(string) string) (name, page, user string) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true" || getenv("GITEA_ACTIONS") == "true":
		run := getenv("GITHUB_RUN_ID")
		if getenv("GITEA_ACTIONS") == "true" {
			run = getenv("GITHUB_RUN_NUMBER")
		}
		if server := getenv("GITHUB_SERVER_URL"); server != "" && run != "" {
			page = strings.TrimSuffix(server, "/") + "/" + getenv("GITHUB_REPOSITORY") + "/actions/runs/" + run
		}
		return joinNames(getenv("GITHUB_WORKFLOW"), getenv("GITHUB_JOB")), page, getenv("GITHUB_ACTOR")
	case getenv("GITLAB_CI") == "true":
		return joinNames(getenv("CI_PROJECT_PATH"), getenv("CI_JOB_NAME")), getenv("CI_JOB_URL"),
			getenv("GITLAB_USER_LOGIN")
	case getenv("BUILDKITE") == "true":
		if page = getenv("BUILDKITE_BUILD_URL"); page != "" && getenv("BUILDKITE_JOB_ID") != "" {
			page += "#" + getenv("BUILDKITE_JOB_ID")
		}
		return joinNames(getenv("BUILDKITE_PIPELINE_SLUG"), cmp.Or(getenv("BUILDKITE_LABEL"),
			getenv("BUILDKITE_STEP_KEY"))), page, getenv("BUILDKITE_BUILD_CREATOR")
	case getenv("JENKINS_URL") != "":
		return getenv("JOB_NAME"), getenv("BUILD_URL"), cmp.Or(getenv("BUILD_USER_ID"), getenv("CHANGE_AUTHOR"))
	}
	return "", "", ""
}

func joinNames(names ...string) string {
	var known []string
	for _, name := range names {
		if name != "" {
			known = append(known, name)
		}
	}
	return strings.Join(known, "/")
}

// JobText says which CI job holds or requests an allocation; empty if its labels name none.
func JobText(labels map[string]string) string {
	text := labels[jobNameLabel]
	if user := labels[jobUserLabel]; user != "" {
		text = strings.TrimSpace(text + " by " + user)
	}
	return strings.TrimSpace(text + " " + labels[jobURLLabel])
}
