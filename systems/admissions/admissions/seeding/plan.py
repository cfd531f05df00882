"""What is planted: programmes, rounds, people, and how far each application has come."""

from __future__ import annotations

from dataclasses import dataclass

DAY = 86_400.0
PASSWORD = "correct horse battery"  # noqa: S105  of everybody, for trying out
PROGRAMMES = (
    ("Informatics, MSc", "Thạc sĩ Tin học"),
    ("Marine Engineering, MSc", "Thạc sĩ Kỹ thuật hàng hải"),
    ("Coastal Studies, MA", "Thạc sĩ Nghiên cứu ven biển"),
    ("Public Health, MPH", "Thạc sĩ Y tế công cộng"),
    ("Piano, artist diploma", "Văn bằng nghệ sĩ Piano"),
)


@dataclass(frozen=True)
class Round:
    """Days from now; `programme` by its place."""

    programme: int
    name: str
    opens: float
    closes: float
    fee: int = 7500
    is_told: bool = False


ROUNDS = (
    Round(0, "Autumn 2027", -40, 21),
    Round(1, "Autumn 2027", -40, 14),
    Round(2, "Autumn 2027", -40, 21),
    Round(3, "Autumn 2027", -30, 9, fee=5000),
    Round(4, "Autumn 2027", 12, 60, fee=0),
    Round(0, "Spring 2027", -170, -70, is_told=True),
    Round(1, "Spring 2027", -170, -70, is_told=True),
)
STAFF = (
    ("ada@uni.example", "Ada Okonjo", "officer"),
    ("binh@uni.example", "Bình Trần", "officer"),
    ("clara@uni.example", "Clara Lindqvist", "finance"),
    ("dung@uni.example", "Dũng Phạm", "administrator"),
)
NAMES = (
    "Nguyễn Thị Ánh", "Đặng Thuỳ Linh", "Inês Ferreira", "Adaeze Okonjo", "Sindre Haugen", "Nguyễn Hoàng Minh", "Una Pálsdóttir", "Juma Bakari",
    "Moa Lindqvist", "Kalina Nowak", "Олена Шевченко", "王小明", "佐藤 花子", "김민준", "محمد الأحمد", "दीपा शर्मा", "Γιώργος Παππάς", "נועה לוי",
    "ศิริพร ใจดี", "Zoë O'Brien-Łukasz", "Trần Văn Dũng", "Lê Thị Hồng", "Phạm Quốc Bảo", "Maria da Conceição Aparecida dos Santos",
    "José Ángel Núñez", "Çağla Öztürk", "Björk Jónsdóttir", "Võ Minh Châu", "Hoàng Gia Huy", "Bùi Khánh Vy",
)  # fmt: skip
STATEMENTS = (
    "I grew up beside a shipyard that no longer builds ships. My bachelor thesis measured how three ferry hulls lose speed between two dockings, with sensors we built ourselves; the operator now cleans a month earlier and saves 4 % of its fuel.\n\nI would like to learn how to design for that from the first line of a drawing.",
    "Em lớn lên ở Hạ Long và muốn nghiên cứu cách các hệ thống phân tán giữ được lời hứa khi mạng không còn tin cậy. Khóa luận của em là một hàng đợi công việc cho bến tàu, chạy được cả khi mất điện.",
    "For two years I have kept the records of a small clinic. Every error I found was an error of the form, not of the nurse. I want to study how to ask people for what they know.",
    "My grandmother counted crabs in the same mangrove for forty years and wrote the numbers on the kitchen door. I have typed them in. They are the longest series of this coast, and I would like to know what they say.",
)
# States and how many of 200; "submitted" goes the whole way by itself once a worker runs.
SHARES = (
    ("draft", 16), ("submitted", 6), ("needs_files", 8), ("awaiting_payment", 34), ("declined", 6), ("completed", 64), ("failed", 4), ("withdrawn", 6), ("told", 56),
)  # fmt: skip


def states(many: int) -> list[str]:
    """So many, in the same shares; at least one of each."""
    found = [state for state, share in SHARES for _ in range(max(1, round(share * many / 200)))]
    return sorted(found, key=[each for each, _ in SHARES].index)
