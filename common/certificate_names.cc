// SPDX-License-Identifier: Apache-2.0
#include "common/certificate_names.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/openssl_owned.h"

namespace fncache {
namespace {

// Says what is wrong with a text, as part of a sentence; returns an empty
// string if nothing is.
std::string WhatIsWrongWithText(const ASN1_STRING* text,
                                absl::string_view what) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) {
    ERR_clear_error();
    return absl::StrCat("holds a ", what, " that is no text");
  }
  const bool nul =
      absl::string_view(reinterpret_cast<char*>(utf8), size).find('\0') !=
      absl::string_view::npos;
  OPENSSL_free(utf8);
  return nul ? absl::StrCat("holds a ", what, " with a NUL inside") : "";
}

std::string WhatIsWrongWith(const GENERAL_NAME* name) {
  switch (name->type) {
    case GEN_DNS:
      return WhatIsWrongWithText(name->d.dNSName, "DNS name");
    case GEN_EMAIL:
      return WhatIsWrongWithText(name->d.rfc822Name, "mail address");
    case GEN_URI:
      return WhatIsWrongWithText(name->d.uniformResourceIdentifier, "URI");
    case GEN_IPADD: {
      const int size = ASN1_STRING_length(name->d.iPAddress);
      if (size == 4 || size == 16) return "";
      return absl::StrCat("holds an IP address of ", size, " bytes");
    }
    default:
      return "";
  }
}

}  // namespace

std::string WhatIsWrongWithNames(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  int at = -1;
  while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0) {
    const std::string wrong = WhatIsWrongWithText(
        X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)),
        "common name");
    if (!wrong.empty()) return wrong;
  }
  int found = 0;
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, &found, nullptr)));
  if (names == nullptr) {
    ERR_clear_error();
    constexpr int kAbsent = -1;
    return found == kAbsent ? "" : "has a subjectAltName that cannot be read";
  }
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string wrong =
        WhatIsWrongWith(sk_GENERAL_NAME_value(names.get(), i));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace fncache
