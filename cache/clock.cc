#include "cache/clock.h"
