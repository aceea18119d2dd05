// Guard mode, environment variables and the end of the process: each case in its own process.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace {

struct Result {
  int status;
  std::string output;

  bool ended_well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  bool says(const std::string& part) const { return output.find(part) != std::string::npos; }
};

Result run(const std::string& name, const std::string& environment) {
  const std::string command = environment + " " MOE_TEST_PROGRAM " " + name + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  Result result{0, {}};
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe)) {
    result.output.append(part, size);
  }
  result.status = pclose(pipe);
  return result;
}

// The lines that name the block's allocation, as every report ends.
void expect_allocation_site(const Result& result) {
  EXPECT_TRUE(result.says("MOE_ACL_GUARD: the block was allocated by\n"));
  EXPECT_TRUE(result.says("acl_runtime_program("));
}

TEST(Guard, AWritePastTheSlackFaults) {
  const Result result = run("write_past_the_slack", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  EXPECT_FALSE(result.ended_well());
  EXPECT_TRUE(result.says("is 33 bytes past the end of the block of 96 bytes"));
  EXPECT_FALSE(result.says("freed"));
  expect_allocation_site(result);
}

TEST(Guard, ModeTwoFaultsOnTheExactByte) {
  const Result result = run("write_past_the_end", "MOE_ACL_GUARD=2");
  SCOPED_TRACE(result.output);
  EXPECT_FALSE(result.ended_well());
  EXPECT_TRUE(result.says("is 1 bytes past the end of the block of 96 bytes"));
  expect_allocation_site(result);
  EXPECT_TRUE(run("write_past_the_end", "MOE_ACL_GUARD=1").ended_well());
}

TEST(Guard, AWriteBeforeTheStartFaults) {
  const Result result = run("write_before_the_start", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  EXPECT_FALSE(result.ended_well());
  EXPECT_TRUE(result.says("is 1 bytes before the start of the block of 4096 bytes"));
}

TEST(Guard, UseAfterFreeFaults) {
  for (const char* mode : {"MOE_ACL_GUARD=1", "MOE_ACL_GUARD=2"}) {
    const Result result = run("read_after_free", mode);
    SCOPED_TRACE(result.output);
    EXPECT_FALSE(result.ended_well());
    EXPECT_TRUE(result.says("is at offset 5 of the block of 96 bytes"));
    EXPECT_TRUE(result.says(", which is freed"));
    expect_allocation_site(result);
  }
}

TEST(Guard, AFreedBlockIsProtectedOnceTheQueueHasPassedIt) {
  const Result result = run("read_after_a_pinned_free", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  EXPECT_TRUE(result.says("synchronize: 0 -\ncopied 6\n"));
  EXPECT_FALSE(result.says("read 6"));
  EXPECT_TRUE(result.says(", which is freed"));
}

TEST(Guard, WritesIntoTheSlackAreReportedOnce) {
  const Result result = run("write_into_the_slack", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  EXPECT_TRUE(result.ended_well());
  EXPECT_TRUE(
      result.says("free: 107000 devPtr: 2 bytes were written behind the block of 100 bytes"));
  EXPECT_TRUE(result.says("the first at offset 100\n"));
  EXPECT_TRUE(result.says("acl_runtime_program("));
  EXPECT_TRUE(result.says("free again: 107000 devPtr: 0x"));
  EXPECT_TRUE(result.says("\ncopy: 107000 dst: 1 bytes were written behind"));
  EXPECT_TRUE(result.says("the first at offset 127\n"));
  EXPECT_TRUE(result.says("copy again: 0 -"));
  EXPECT_TRUE(
      result.says("synchronize: 507015 1 bytes were written before the block of 100 bytes"));
  EXPECT_TRUE(result.says("synchronize again: 0 -"));
  EXPECT_TRUE(result.says("device: 507015 1 bytes were written behind"));
  EXPECT_TRUE(result.says("event: 507015 1 bytes were written behind"));
  EXPECT_TRUE(result.says("free: 0 -"));
}

TEST(Guard, AnotherFaultIsNotItsBusiness) {
  const Result result = run("fault_elsewhere", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  EXPECT_FALSE(result.ended_well());
  EXPECT_FALSE(result.says("MOE_ACL_GUARD"));
}

TEST(Guard, TheProgramsOwnHandlerHasItsTurn) {
  const Result result = run("fault_with_a_handler_of_its_own", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  EXPECT_TRUE(WIFEXITED(result.status));
  EXPECT_EQ(WEXITSTATUS(result.status), 7);
  const size_t ours = result.output.find("33 bytes past the end");
  ASSERT_NE(ours, std::string::npos);
  EXPECT_NE(result.output.find("the program's handler", ours), std::string::npos);
}

TEST(Guard, WithoutMappingsBlocksAreUnguarded) {
  // A sanitizer's own allocator needs mappings, and ends the process when it gets none.
  if (std::string(MOE_TEST_SANITIZER) != "") GTEST_SKIP() << "needs a build without sanitizers";
  const Result result = run("run_out_of_mappings", "MOE_ACL_GUARD=1");
  SCOPED_TRACE(result.output);
  if (result.says("no limit of mappings here")) GTEST_SKIP() << "this system has no such limit";
  const std::string notice = "the system has no room for more guarded blocks";
  const std::string message = "malloc: 0 MOE_ACL_GUARD: " + notice;
  EXPECT_TRUE(result.says(message));
  EXPECT_TRUE(result.says("malloc: 0 -"));
  EXPECT_FALSE(result.says("free: 107000"));
  // Once in the message, once on stderr.
  const size_t first = result.output.find(notice);
  const size_t second = result.output.find(notice, first + 1);
  EXPECT_NE(second, std::string::npos);
  EXPECT_EQ(result.output.find(notice, second + 1), std::string::npos);
  EXPECT_TRUE(result.says("is 33 bytes past the end of the block of 96 bytes"));
}

TEST(Guard, OffByDefault) {
  const Result result = run("use_host_memory", "");
  SCOPED_TRACE(result.output);
  EXPECT_TRUE(result.ended_well());
  EXPECT_TRUE(result.says("copy: 107000 dst: 0x"));
}

TEST(Environment, HostMemoryMayCountAsDeviceMemory) {
  const Result result = run("use_host_memory", "MOE_ACL_ALLOW_HOST_MEMORY=1");
  SCOPED_TRACE(result.output);
  EXPECT_TRUE(result.says("copy: 0 -\ncopied 4\n"));
}

TEST(Environment, AnUnknownValueIsAnError) {
  const Result guard = run("use_host_memory", "MOE_ACL_GUARD=3");
  EXPECT_TRUE(guard.says("init: 100000 MOE_ACL_GUARD: got \"3\", needs 0, 1 or 2\n"))
      << guard.output;
  EXPECT_TRUE(guard.says("device: 100000 MOE_ACL_GUARD: got \"3\"")) << guard.output;
  const Result host = run("use_host_memory", "MOE_ACL_ALLOW_HOST_MEMORY=yes");
  EXPECT_TRUE(host.says("MOE_ACL_ALLOW_HOST_MEMORY: got \"yes\", needs 0 or 1")) << host.output;
  const Result launch = run("use_host_memory", "MOE_ACL_LAUNCH_BLOCKING=2");
  EXPECT_TRUE(launch.says("MOE_ACL_LAUNCH_BLOCKING: got \"2\"")) << launch.output;
  const Result check = run("use_host_memory", "MOE_ACL_CHECK_INDICES=01");
  EXPECT_TRUE(check.says("MOE_ACL_CHECK_INDICES: got \"01\"")) << check.output;
  EXPECT_TRUE(
      run("use_host_memory", "MOE_ACL_GUARD= MOE_ACL_CHECK_INDICES=0").says("copy: 107000"));
}

TEST(Exit, WithWorkLeftEndsAtOnce) {
  for (const char* mode : {"", "MOE_ACL_GUARD=1"}) {
    const Result result = run("exit_with_work_left", mode);
    SCOPED_TRACE(result.output);
    EXPECT_TRUE(result.ended_well());
    EXPECT_TRUE(result.says("leaving"));
  }
}

TEST(Exit, StaticDestructorsMayReleaseEverything) {
  for (const char* mode : {"", "MOE_ACL_GUARD=1"}) {
    const Result result = run("release_in_static_destructors", mode);
    SCOPED_TRACE(result.output);
    EXPECT_TRUE(result.ended_well());
    EXPECT_TRUE(result.says("synchronize at exit: 0 -\ndestroy at exit: 0 -\nfree at exit: 0 -\n"));
    EXPECT_TRUE(result.says("free twice at exit: 107000 devPtr: 0x"));
    EXPECT_TRUE(result.says("reset at exit: 0 -"));
  }
}

}  // namespace
