// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/names.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"

namespace fncache::sdk {
namespace {

// C++20's keywords too, since functions may be compiled as that, and the GNU
// dialects' `typeof`.
constexpr absl::string_view kWords = R"(
alignas alignof and and_eq asm auto bitand bitor bool break case catch char
char16_t char32_t char8_t class co_await co_return co_yield compl concept const
const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto
if inline int long mutable namespace new noexcept not not_eq nullptr operator or
or_eq private protected public register reinterpret_cast requires return short
signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using
virtual void volatile wchar_t while xor xor_eq

AIO_PRIO_DELTA_MAX BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN
BUFSIZ BYTE_ORDER CHARCLASS_NAME_MAX CLOCKS_PER_SEC CLOSE_RANGE_CLOEXEC
CLOSE_RANGE_UNSHARE COLL_WEIGHTS_MAX CSIGNAL DECIMAL_DIG DELAYTIMER_MAX EOF
EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FILENAME_MAX FOPEN_MAX F_LOCK F_OK
F_TEST F_TLOCK F_ULOCK HOST_NAME_MAX I INFINITY IOV_MAX LINE_MAX LITTLE_ENDIAN
LOGIN_NAME_MAX L_INCR L_SET L_XTND L_ctermid L_cuserid L_tmpnam MATH_ERREXCEPT
MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MINSIGSTKSZ
MQ_PRIO_MAX NAME_MAX NAN NFDBITS NGREG NGROUPS_MAX NSIG NULL NZERO PATH_MAX
PDP_ENDIAN PIPE_BUF P_tmpdir RAND_MAX RENAME_EXCHANGE RENAME_NOREPLACE
RENAME_WHITEOUT RE_DUP_MAX RTSIG_MAX R_OK SEM_VALUE_MAX SS_DISABLE SS_ONSTACK
STDERR_FILENO STDIN_FILENO STDOUT_FILENO TEMP_FAILURE_RETRY TIMER_ABSTIME
TIME_UTC TMP_MAX TTY_NAME_MAX WCONTINUED WEOF WEXITED WEXITSTATUS WIFCONTINUED
WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG
WUNTRACED W_OK X_OK alloca assert assert_perror be16toh be32toh be64toh errno
htobe16 htobe32 htobe64 htole16 htole32 htole64 i386 issubnormal le16toh le32toh
le64toh linux math_errhandling offsetof pthread_cleanup_pop
pthread_cleanup_pop_restore_np pthread_cleanup_push
pthread_cleanup_push_defer_np sa_handler sa_sigaction sched_priority setjmp
si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int si_lower
si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid
si_upper si_utime si_value sigev_notify_attributes sigev_notify_function sigmask
sigsetjmp stderr stdin stdout strdupa strndupa unix va_arg va_copy va_end
va_start

E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE
EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG
ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM
EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ
EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED
EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX
ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG
ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA
ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET
ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY
ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP
EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE
ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN
ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS
ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL
)";

// Families of macros; the last line is what a compiler keeps for itself.
constexpr char kFamilies[] =
    R"(U?INT(_FAST|_LEAST)?(8|16|32|64|MAX|PTR)?_(C|MAX|MIN|WIDTH))"
    R"(|U?(CHAR|SCHAR|SHRT|LONG|LLONG|LONG_LONG|BOOL|PTRDIFF|SIZE|SSIZE|WCHAR)_(MAX|MIN|WIDTH))"
    R"(|(WINT|SIG_ATOMIC)_(MAX|MIN|WIDTH)|(CHAR|WORD|LONG)_BIT)"
    R"(|(FLT|LDBL|DBL|FLT(32|64|128|32X|64X))_([A-Z0-9]+_)*(DIG|EPSILON|EXP|MAX|METHOD|MIN|RADIX|ROUNDS|SUBNORM))"
    R"(|(PRI|SCN)[diouxX](8|16|32|64|MAX|PTR|(FAST|LEAST)(8|16|32|64)))"
    R"(|ATOMIC_([A-Z0-9_]+_LOCK_FREE|FLAG_INIT|VAR_INIT))"
    R"(|M_([1-4]_|2_SQRT|SQRT|SQRT1_|LN|LOG)?(PI|PI_[24]|E|10E?|2E?)(f|l|f\d+x?)?)"
    R"(|(FE|FP|FPE|LC|PTHREAD|CLONE|ADJ|STA|MOD|SEGV|REG|SA|SI|ILL|BUS|CLD|TRAP|POLL|SCHED|XATTR|NL)_[A-Z0-9_]+)"
    R"(|(HUGE_VAL|SNAN|CMPLX)[FL_]?(F?\d+X?)?)"
    R"(|SIG(ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|RTMAX|RTMIN|SEGV|STKFLT|STKSZ|STOP|SYS|TERM|TRAP|TSTP|TTIN|TTOU|URG|USR[12]|VTALRM|WINCH|XCPU|XFSZ))"
    R"(|SIG_(BLOCK|DFL|ERR|HOLD|IGN|SETMASK|UNBLOCK)|SIGEV_(NONE|SIGNAL|THREAD|THREAD_ID))"
    R"(|CLOCK_(BOOTTIME|MONOTONIC|REALTIME|TAI|PROCESS|THREAD)[A-Z_]*|SEEK_(CUR|DATA|END|HOLE|SET))"
    R"(|CPU_(ALLOC|ALLOC_SIZE|AND|CLR|COUNT|EQUAL|FREE|ISSET|OR|SET|SETSIZE|XOR|ZERO)(_S)?)"
    R"(|FD_(CLR|ISSET|SET|SETSIZE|ZERO))"
    R"(|__\w*|_[A-Z][A-Z0-9_]*|_ISw?bit|_(Alignas|Alignof|Atomic|BitInt|Bool|Complex|Float\w+|Generic|Imaginary|Noreturn|Pragma|Static_assert|Thread_local))";

std::string Sanitized(absl::string_view wire) {
  std::string name(wire);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0])))
    name.insert(0, "_");
  return name;
}

std::string Unreserved(std::string name) {
  if (IsReserved(name)) name += '_';
  return name;
}

void Capitalize(std::string* name) {
  (*name)[0] = absl::ascii_toupper(static_cast<unsigned char>((*name)[0]));
}

}  // namespace

bool IsReserved(absl::string_view name) {
  static const auto* const words = new absl::flat_hash_set<absl::string_view>(
      absl::StrSplit(kWords, absl::ByAnyChar(" \n"), absl::SkipEmpty()));
  static const auto* const families = new RE2(kFamilies);
  return words->contains(name) ||
         RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *families);
}

std::string CppName(absl::string_view wire) {
  return Unreserved(Sanitized(wire));
}

std::string CppClassName(absl::string_view wire, absl::string_view suffix) {
  std::string name = absl::StrCat(Sanitized(wire), suffix);
  Capitalize(&name);
  return Unreserved(std::move(name));
}

std::string CppConstantName(absl::string_view value) {
  std::string name = "k";
  bool word = true;  // whether a word begins
  for (const char character : value) {
    const auto c = static_cast<unsigned char>(character);
    if (!absl::ascii_isalnum(c)) {
      word = true;
      continue;
    }
    // 1.2 and 12 are two values.
    if (word && absl::ascii_isdigit(c) &&
        absl::ascii_isdigit(static_cast<unsigned char>(name.back()))) {
      name += '_';
    }
    name += word ? static_cast<char>(absl::ascii_toupper(c)) : character;
    word = false;
  }
  if (value.empty()) return "kEmpty";
  if (name.size() > 1) return name;
  for (const char c : value) {  // without letters: kX2B is `+`
    absl::StrAppendFormat(&name, "X%02X", static_cast<unsigned char>(c));
  }
  return name;
}

std::string Names::Add(std::string name) {
  if (members_.count(name) != 0) name += '_';
  std::string free = name;
  for (int i = 2; members_.count(free) != 0 || !used_.insert(free).second;
       ++i) {
    free = absl::StrCat(name, "_", i);
  }
  return free;
}

}  // namespace fncache::sdk
